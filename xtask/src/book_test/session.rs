//! The terminals of one reader: a folder, commands that run in it, and some that run on meanwhile.

use super::expected::missing;
use super::page::Step;
use crate::command::{Failure, fresh, root, succeeds, target};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest that a command may take, and that a line may take to come.
const LONGEST: Duration = Duration::from_secs(120);

/// Time between two looks at a command.
const LOOK: Duration = Duration::from_millis(20);

struct Terminal {
    folder: String,
    child: Child,
    output: PathBuf,
}

pub(super) struct Session {
    home: PathBuf,
    path: OsString,
    terminals: Vec<Terminal>,
    /// Commands so far: each has a file for its output.
    count: usize,
}

impl Session {
    /// A reader in a fresh folder who finds `program`, and the Python of the step `python`.
    pub(super) fn new(home: &Path, program: &Path) -> Result<Self, Failure> {
        fresh(home)?;
        let given = std::env::var_os("MURMURATE_TEST_PYTHON").map(PathBuf::from);
        let python = target().join("tools/python/bin/python");
        let python = given.unwrap_or(python);
        let mut folders: Vec<PathBuf> = [program, &python]
            .iter()
            .filter_map(|file| Some(file.parent()?.to_owned()))
            .collect();
        let path = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)
            .map_err(|error| Failure::new(format!("PATH cannot be made: {error}")))?;
        Ok(Self {
            home: home.to_owned(),
            path,
            terminals: Vec::new(),
            count: 0,
        })
    }

    /// Runs a command; true if it succeeds.
    pub(super) fn succeeds(&mut self, command: &str) -> Result<bool, Failure> {
        let mut terminal = self.start(command, "")?;
        Ok(ended(&mut terminal)?.success())
    }

    /// Does what a page tells its reader.
    pub(super) fn perform(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            Step::File { path, folder, text } => {
                let folder = self.home.join(folder);
                fs::create_dir_all(&folder)?;
                Ok(fs::write(folder.join(path), text)?)
            }
            Step::Stop { folder, code } => self.stop(folder, *code),
            Step::Run {
                commands,
                folder,
                background,
                expected,
            } => {
                let mut terminal = self.start(commands, folder)?;
                if *background {
                    let came = comes(&mut terminal, expected);
                    self.terminals.push(terminal);
                    return came;
                }
                let status = ended(&mut terminal)?;
                let printed = fs::read_to_string(&terminal.output)?;
                check((status, 0), expected, &printed)
            }
        }
    }

    pub(super) fn end(&mut self) -> Result<(), Failure> {
        while let Some(terminal) = self.terminals.last() {
            let folder = terminal.folder.clone();
            self.stop(&folder, 0)?;
        }
        Ok(())
    }

    fn start(&mut self, commands: &str, folder: &str) -> Result<Terminal, Failure> {
        let home = self.home.join(folder);
        fs::create_dir_all(&home)?;
        let output = self.home.join(format!("output-{}.txt", self.count));
        self.count += 1;
        let file = File::create(&output)?;
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", commands]);
        bash.current_dir(home).env("PATH", &self.path);
        bash.env("PYTHONPATH", root().join("python"));
        bash.env("PYTHONDONTWRITEBYTECODE", "1");
        bash.env_remove("MURMURATE_LOG");
        bash.stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        // Ctrl+C goes to a whole terminal.
        bash.process_group(0);
        let child = bash.spawn()?;
        Ok(Terminal {
            folder: folder.to_owned(),
            child,
            output,
        })
    }

    /// Presses Ctrl+C in the last terminal of a folder. What ran there must end with this code.
    fn stop(&mut self, folder: &str, code: i32) -> Result<(), Failure> {
        let last = self.terminals.iter().rposition(|t| t.folder == folder);
        let Some(last) = last else {
            return Err(Failure::new(format!("nothing runs in {folder:?}")));
        };
        let mut terminal = self.terminals.remove(last);
        signal(&terminal, "INT");
        let status = ended(&mut terminal)?;
        check((status, code), &[], &fs::read_to_string(&terminal.output)?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for terminal in &mut self.terminals {
            signal(terminal, "KILL");
            let _ = terminal.child.wait();
        }
    }
}

fn signal(terminal: &Terminal, name: &str) {
    let group = format!("-{}", terminal.child.id());
    // It may have ended already.
    succeeds("kill", &["-s", name, "--", &group]);
}

/// Waits for the end of a command. One that takes too long is killed.
fn ended(terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let began = Instant::now();
    loop {
        if let Some(status) = terminal.child.try_wait()? {
            return Ok(status);
        }
        if began.elapsed() > LONGEST {
            signal(terminal, "KILL");
            terminal.child.wait()?;
            let printed = fs::read_to_string(&terminal.output)?;
            let seconds = LONGEST.as_secs();
            return Err(Failure::new(format!("took {seconds} s:\n{printed}")));
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits until all expected lines were printed.
fn comes(terminal: &mut Terminal, expected: &[String]) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let end = terminal.child.try_wait()?;
        let printed = fs::read_to_string(&terminal.output)?;
        let Some(line) = missing(expected, &printed) else {
            return Ok(());
        };
        if let Some(status) = end {
            let text = format!("ended ({status}) without the line `{line}`:\n{printed}");
            return Err(Failure::new(text));
        }
        if began.elapsed() > LONGEST {
            let text = format!("the line `{line}` does not come:\n{printed}");
            return Err(Failure::new(text));
        }
        std::thread::sleep(LOOK);
    }
}

/// `status` is how a command ended, with the exit code that it should have.
fn check(
    (status, code): (ExitStatus, i32),
    expected: &[String],
    printed: &str,
) -> Result<(), Failure> {
    if status.code() != Some(code) {
        return Err(Failure::new(format!("ended with {status}:\n{printed}")));
    }
    match missing(expected, printed) {
        None => Ok(()),
        Some(line) => Err(Failure::new(format!("no line `{line}` in:\n{printed}"))),
    }
}
