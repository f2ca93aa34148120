//! One daemon as a child process: reads its JSON lines, sends it signals, kills it when dropped.

use crate::{Settings, Turn, program};
use murmurate_node::progress::{Line, Progress};
use murmurate_node::report::NodeReport;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Default limit of a wait, which suffices on a busy machine.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// Events that are printed of each daemon of a test that fails.
const EVENTS_SHOWN: usize = 200;

/// Output of a child process.
#[derive(Debug)]
enum News {
    Line(Box<Line>),
    Words(String),
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    news: Receiver<News>,
    /// All output, for the message of a failed wait.
    transcript: Vec<String>,
    report: Option<NodeReport>,
    notes: Vec<String>,
    errors: Vec<String>,
    /// Its directory, if it was started with one.
    dir: Option<PathBuf>,
}

/// A daemon that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its report, if it left in the normal way.
    pub report: Option<NodeReport>,
    /// The notes that it printed.
    pub notes: Vec<String>,
    /// Lines that it wrote to stderr.
    pub errors: Vec<String>,
}

impl Ended {
    /// The report of a daemon that left in the normal way.
    pub fn polite(&self) -> &NodeReport {
        assert!(self.status.success(), "{self:?}");
        self.report.as_ref().expect("it left without a report")
    }

    /// The single error line of a daemon that failed with exit code 1.
    pub fn failed(&self) -> &str {
        self.failed_with(1)
    }

    /// The single error line of a daemon that failed with this exit code.
    pub fn failed_with(&self, code: i32) -> &str {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert_eq!(self.errors.len(), 1, "{self:?}");
        self.errors[0].strip_prefix("error: ").expect("an error")
    }
}

impl Daemon {
    /// Starts a daemon in `dir` that joins `join`.
    pub fn start(turn: &Turn, settings: &Settings, dir: &Path, join: &[&str]) -> Self {
        Self::start_with(turn, settings, dir, join, &[])
    }

    /// As [`Daemon::start`], with more flags.
    pub fn start_with(
        turn: &Turn,
        settings: &Settings,
        dir: &Path,
        join: &[&str],
        flags: &[&str],
    ) -> Self {
        let mut command = Command::new(program());
        command.arg("run").arg("--config").arg(settings.write(dir));
        for address in join {
            command.args(["--join", address]);
        }
        command.args(flags);
        let mut daemon = Self::spawn(turn, command);
        daemon.dir = Some(dir.to_owned());
        daemon
    }

    /// Starts a program that prints a daemon's JSON lines. Adds `--log json`.
    pub fn spawn(_turn: &Turn, mut command: Command) -> Self {
        let mut child = command
            .args(["--log", "json"])
            .env("RAYON_NUM_THREADS", "1")
            .env_remove("MURMURATE_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, news) = channel();
        read(child.stdout.take().unwrap(), sender.clone());
        read(child.stderr.take().unwrap(), sender);
        Self {
            child,
            news,
            transcript: Vec::new(),
            report: None,
            notes: Vec::new(),
            errors: Vec::new(),
            dir: None,
        }
    }

    /// Waits for a line for which `found` returns a value. Passes each line once, in order.
    pub fn wait_for<T>(&mut self, what: &str, mut found: impl FnMut(&Line) -> Option<T>) -> T {
        let until = Instant::now() + USUAL_WAIT;
        loop {
            match self.next(until) {
                Ok(Some(line)) => {
                    if let Some(it) = found(&line) {
                        return it;
                    }
                }
                Ok(None) => {}
                Err(error) => panic!("{what}: {error}; it said:\n{}", self.transcript.join("\n")),
            }
        }
    }

    /// Waits until others can join it. Returns its peer id, address and HTTP address.
    pub fn listening(&mut self) -> (String, String, String) {
        self.wait_for("listening", |line| match line {
            Line::Listening {
                peer,
                addresses,
                http,
            } => {
                let quic = addresses.iter().find(|a| a.contains("quic-v1"))?;
                Some((peer.clone(), quic.clone(), http.clone()?))
            }
            _ => None,
        })
    }

    /// Waits until it is in round `round` or later.
    pub fn reaches(&mut self, round: u64) -> Progress {
        self.wait_for(&format!("round {round}"), |line| match line {
            Line::Progress(progress) if progress.round >= round => Some(progress.clone()),
            _ => None,
        })
    }

    /// Waits for a note that contains `text`.
    pub fn notes(&mut self, text: &str) -> String {
        self.wait_for(&format!("a note with `{text}`"), |line| match line {
            Line::Note { text: note } if note.contains(text) => Some(note.clone()),
            _ => None,
        })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }

    /// Sends Ctrl+C and waits for the end.
    pub fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.end()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let until = Instant::now() + USUAL_WAIT * 2;
        loop {
            match self.next(until) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it does not end; it said:\n{}", self.transcript.join("\n"))
                }
            }
        }
        // Both streams are closed, so it has ended or is about to.
        let status = self.child.wait().unwrap();
        Ended {
            status,
            report: self.report.take(),
            notes: std::mem::take(&mut self.notes),
            errors: std::mem::take(&mut self.errors),
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn next(&mut self, until: Instant) -> Result<Option<Line>, RecvTimeoutError> {
        let left = until.saturating_duration_since(Instant::now());
        match self.news.recv_timeout(left)? {
            News::Words(words) => {
                self.transcript.push(words.clone());
                self.errors.push(words);
                Ok(None)
            }
            News::Line(line) => {
                self.transcript.push(format!("{line:?}"));
                match line.as_ref() {
                    Line::Report(report) => self.report = Some((**report).clone()),
                    Line::Note { text } => self.notes.push(text.clone()),
                    _ => {}
                }
                Ok(Some(*line))
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.take().filter(|_| std::thread::panicking()) {
            let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
            let last: Vec<&str> = events.lines().rev().take(EVENTS_SHOWN).collect();
            println!("the last events in {}, newest first:", dir.display());
            println!("{}", last.join("\n"));
        }
        // It may have ended already. SIGKILL also ends a stopped process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(stream: impl Read + Send + 'static, to: Sender<News>) {
    std::thread::spawn(move || {
        for text in BufReader::new(stream).lines().map_while(Result::ok) {
            let news = match serde_json::from_str(&text) {
                Ok(line) => News::Line(Box::new(line)),
                Err(_) => News::Words(text),
            };
            if to.send(news).is_err() {
                return;
            }
        }
    });
}
