//! Starts the training loop, starts it again when it ends, and ends it with the daemon.

use crate::error::AttachError;
use crate::terms::Notes;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a training loop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The pause before a training loop is started again. It doubles with every start.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A training loop that lived this long begins with the shortest pause again.
const LIVED: Duration = Duration::from_secs(60);

/// How long a training loop may take to end once training is over: it may save its model.
const END_WAIT: Duration = Duration::from_secs(60);

/// How long it may take after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_secs(5);

/// Lines of a traceback that are held back until it is known whether they are new.
const TRACEBACK_LINES_MAX: usize = 400;

/// How Python begins one.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// The process group of the training loop: it and its workers.
#[derive(Debug, Default)]
pub struct Group {
    /// Held while it is signalled and while it is reaped, so that a number that was given to another
    /// process is never hit.
    leader: Mutex<Option<Pid>>,
    /// Whether training is over, so that nothing is started again.
    over: AtomicBool,
}

impl Group {
    /// Training is over: a training loop that ends is not started again.
    pub(crate) fn training_is_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends all its processes a signal; nothing happens when there are none.
    pub fn signal(&self, signal: Signal) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *leader
            && let Err(error) = kill_process_group(pid, signal)
        {
            tracing::debug!(%error, "the trainer's group could not be signalled");
        }
    }

    fn set(&self, leader: Option<Pid>) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = leader;
    }

    /// The leader's exit status once it has ended. Its workers are ended with it.
    fn reap(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let mut leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *leader {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(pid), options)?.is_none() {
                return Ok(None);
            }
            // The leader is not reaped yet, so its number is still the group's.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let status = child.try_wait()?;
        if status.is_some() {
            *leader = None;
        }
        Ok(status)
    }
}

/// What is known of the training loops that ended.
#[derive(Debug, Default)]
struct Ended {
    times: u32,
    words: String,
}

/// Keeps one training loop running. Dropped, it ends it.
#[derive(Debug)]
pub struct Supervisor {
    group: Arc<Group>,
    ended: Arc<Mutex<Ended>>,
    thread: Option<JoinHandle<()>>,
}

struct Keeper {
    command: Vec<OsString>,
    socket: PathBuf,
    group: Arc<Group>,
    ended: Arc<Mutex<Ended>>,
    notes: Notes,
    /// The last traceback that was shown.
    shown: Arc<Mutex<Vec<String>>>,
}

impl Supervisor {
    /// Starts `command`, which finds the socket in the environment variable `MURMURATE_SOCKET`. What it
    /// prints goes to this process's standard error.
    ///
    /// # Errors
    /// When the system refuses a thread. A command that cannot be started is noted, and tried again.
    ///
    /// # Panics
    /// When the command is empty.
    pub fn start(command: &[OsString], socket: &Path, notes: Notes) -> Result<Self, AttachError> {
        assert!(!command.is_empty(), "a command has a program");
        let mut this = Self {
            group: Arc::default(),
            ended: Arc::default(),
            thread: None,
        };
        let mut keeper = Keeper {
            command: command.to_vec(),
            socket: socket.to_owned(),
            group: Arc::clone(&this.group),
            ended: Arc::clone(&this.ended),
            notes,
            shown: Arc::default(),
        };
        let thread = std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || keeper.run());
        this.thread = Some(thread.map_err(AttachError::Thread)?);
        Ok(this)
    }

    /// The process group of the training loop.
    pub fn group(&self) -> Arc<Group> {
        Arc::clone(&self.group)
    }

    /// How often the training loop has ended, and the last line that it printed.
    pub fn ended(&self) -> (u32, String) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        (ended.times, ended.words.clone())
    }

    /// Training is over: waits for the training loop to end, and ends it if it takes too long.
    pub fn finish(mut self) {
        self.stop(END_WAIT);
    }

    fn stop(&mut self, wait: Duration) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.group.training_is_over();
        for (wait, signal) in [(wait, Signal::TERM), (TERMINATE_WAIT, Signal::KILL)] {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < wait {
                std::thread::sleep(LOOK_EVERY);
            }
            if !thread.is_finished() {
                self.group.signal(signal);
            }
        }
        // Killed processes end.
        let _ = thread.join();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl Keeper {
    fn run(&mut self) {
        let mut pause = PAUSE_MIN;
        while !self.group.is_over() {
            let since = Instant::now();
            let ended = self.live();
            if self.group.is_over() {
                return;
            }
            if since.elapsed() >= LIVED {
                pause = PAUSE_MIN;
            }
            let seconds = pause.as_secs();
            (self.notes)(&format!("{ended}; it is started again in {seconds} s"));
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.group.is_over() {
                std::thread::sleep(LOOK_EVERY);
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One life of the training loop; says how it ended.
    fn live(&mut self) -> String {
        let program = self.command[0].to_string_lossy().into_owned();
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .env("MURMURATE_SOCKET", &self.socket)
            .env("MURMURATE_SUPERVISED", "1")
            // Lines appear when they are printed.
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::from(io::stderr()))
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let words = format!("{program} cannot be started: {error}");
                self.note_end(&words);
                return words;
            }
        };
        self.group
            .set(i32::try_from(child.id()).ok().and_then(Pid::from_raw));
        let stderr = child.stderr.take();
        let shown = Arc::clone(&self.shown);
        let reader = stderr.map(|err| std::thread::spawn(move || pass_on(err, &shown)));
        let status = loop {
            match self.group.reap(&mut child) {
                Ok(None) => std::thread::sleep(LOOK_EVERY),
                Ok(Some(status)) => break status.to_string(),
                Err(error) => break error.to_string(),
            }
        };
        self.group.set(None);
        let words = reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default();
        self.note_end(&words);
        match words.is_empty() {
            true => format!("the trainer ended ({status})"),
            false => format!("the trainer ended ({status}): {words}"),
        }
    }

    fn note_end(&self, words: &str) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.times += 1;
        words.clone_into(&mut ended.words);
    }
}

/// Passes on what the training loop prints, but a traceback only once. Returns the last line.
fn pass_on(stream: impl Read, shown: &Mutex<Vec<String>>) -> String {
    let mut last = String::new();
    let mut held: VecDeque<String> = VecDeque::new();
    let mut lines = BufReader::new(stream).split(b'\n');
    while let Some(Ok(bytes)) = lines.next() {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if !line.trim().is_empty() {
            line.trim().clone_into(&mut last);
        }
        if held.is_empty() && !line.starts_with(TRACEBACK) {
            print(&line);
            continue;
        }
        held.push_back(line);
        if held.len() > TRACEBACK_LINES_MAX {
            held.drain(..).for_each(|line| print(&line));
        }
    }
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    if !held.is_empty() && held != *shown {
        held.iter().for_each(|line| print(line));
        *shown = held.into();
    }
    last
}

/// A line on standard error. One that is closed ends no training.
fn print(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
