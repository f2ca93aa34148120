//! Runs commands that end by themselves and returns their output.

use crate::{Turn, program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long a command may take before it is killed. No command of the tests comes near it.
const COMMAND_WAIT: Duration = Duration::from_secs(240);

/// Result of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Seconds it took.
    pub seconds: f64,
}

/// Runs `murmurate` in `dir`.
pub fn murmurate(dir: &Path, args: &[&str]) -> Outcome {
    let since = Instant::now();
    let child = Command::new(program())
        .args(args)
        .current_dir(dir)
        .env_remove("MURMURATE_LOG")
        .env("RAYON_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(COMMAND_WAIT) else {
        // Its child processes end with it.
        kill_process(pid.unwrap(), Signal::KILL).unwrap();
        let output = ended.recv().unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{args:?} does not end; it said:\n{said}");
    };
    let output = output.unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        seconds: since.elapsed().as_secs_f64(),
    }
}

/// Runs `murmurate`, which must succeed. Returns its standard output.
pub fn success(dir: &Path, args: &[&str]) -> String {
    let outcome = murmurate(dir, args);
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
    outcome.stdout
}

/// Runs `murmurate`, which must fail with exit code 1 and one error line. Returns that line.
pub fn failure(dir: &Path, args: &[&str]) -> String {
    failure_with(1, dir, args)
}

/// As [`failure`], with another exit code.
pub fn failure_with(expected: i32, dir: &Path, args: &[&str]) -> String {
    let Outcome { code, stderr, .. } = murmurate(dir, args);
    assert_eq!(code, Some(expected), "{args:?}: {stderr}");
    let errors = stderr.lines().filter_map(|l| l.strip_prefix("error: "));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(errors.len(), 1, "{args:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    errors[0].to_owned()
}

/// Runs `murmurate local` with these arguments. Returns the object that it prints.
pub fn local(_turn: &Turn, args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let always = ["local", "--json", "--baseline", "0", "--dir", "swarm"];
    let outcome = murmurate(dir.path(), &[&always, args].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
    println!("local {args:?}: {:.1} s", outcome.seconds);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// Fails unless a text has this part.
#[track_caller]
pub fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// Fails unless a text begins so.
#[track_caller]
pub fn assert_begins(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}");
}

/// Fails unless a text ends so.
#[track_caller]
pub fn assert_ends(text: &str, end: &str) {
    assert!(text.ends_with(end), "{text}");
}
