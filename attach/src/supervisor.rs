//! Starts the training loop, starts it again when it ends, and ends it with the daemon. An island has one
//! for each rank, in processes that may speak with each other: all are started again when one ends.

use crate::error::AttachError;
use crate::failures::Failures;
use crate::group::Group;
use crate::reader::Reader;
use crate::terms::Notes;
use rustix::process::{Pid, Signal};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

/// The ends of training loops.
#[derive(Debug, Default)]
struct Ended {
    times: u32,
    /// The last line that it printed.
    words: String,
    /// A line about the last end.
    text: String,
}

/// Keeps the training loops of one daemon running. Dropped, it ends them.
#[derive(Debug)]
pub struct Supervisor {
    loops: Trouble,
    thread: Option<JoinHandle<()>>,
}

/// Tells whether a training loop is away.
#[derive(Clone, Debug)]
pub struct Trouble {
    groups: Vec<Arc<Group>>,
    ended: Arc<Mutex<Ended>>,
}

impl Trouble {
    /// A line about how it ended last, while it has not attached again.
    pub fn text(&self) -> Option<String> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let away = self.groups.iter().any(|group| !group.is_attached());
        (ended.times > 0 && away).then(|| ended.text.clone())
    }
}

struct Keeper {
    command: Vec<OsString>,
    /// One for each rank.
    ranks: Vec<(PathBuf, Arc<Group>)>,
    ended: Arc<Mutex<Ended>>,
    notes: Notes,
    failures: Failures,
    /// The last traceback that was shown.
    shown: VecDeque<String>,
}

/// A rank's process.
struct Life {
    rank: usize,
    child: Child,
    reader: Option<Reader>,
    /// How it ended.
    end: Option<String>,
}

impl Supervisor {
    /// Starts `command` for each of the sockets, which it finds in the environment variable
    /// `MURMURATE_SOCKET`. Where they are several, `RANK` and `WORLD_SIZE` are its rank and their number, and
    /// so are `LOCAL_RANK`, `MURMURATE_RANK`, `LOCAL_WORLD_SIZE` and `MURMURATE_RANKS`. Its output goes to
    /// this process's standard error.
    ///
    /// # Errors
    /// When the system refuses a thread. A command that cannot be started is noted, and tried again.
    ///
    /// # Panics
    /// When the command is empty, or there is no socket.
    pub fn start(
        command: &[OsString],
        sockets: &[&Path],
        notes: Notes,
    ) -> Result<Self, AttachError> {
        assert!(!command.is_empty(), "a command has a program");
        assert!(!sockets.is_empty(), "a daemon has a trainer");
        let mut this = Self {
            loops: Trouble {
                groups: sockets.iter().map(|_| Arc::default()).collect(),
                ended: Arc::default(),
            },
            thread: None,
        };
        let mut keeper = Keeper {
            command: command.to_vec(),
            ranks: sockets
                .iter()
                .map(|socket| socket.to_path_buf())
                .zip(this.loops.groups.iter().cloned())
                .collect(),
            ended: Arc::clone(&this.loops.ended),
            notes,
            failures: Failures::default(),
            shown: VecDeque::new(),
        };
        let thread = std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || keeper.run());
        this.thread = Some(thread.map_err(AttachError::Thread)?);
        Ok(this)
    }

    /// The process group of a rank's training loop.
    pub fn group(&self, rank: u32) -> Option<Arc<Group>> {
        self.loops.groups.get(rank as usize).cloned()
    }

    /// How often the training loop has ended, and the last line that it printed.
    pub fn ended(&self) -> (u32, String) {
        let ended = &self.loops.ended;
        let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        (ended.times, ended.words.clone())
    }

    /// A view of training loops that ended, for status pages.
    pub fn trouble(&self) -> Trouble {
        self.loops.clone()
    }

    /// Training is over: waits for the training loop to end, and ends it if it takes too long. One that has not
    /// attached has nothing to save.
    pub fn finish(mut self) {
        let attached = self.loops.groups.iter().any(|group| group.is_attached());
        self.stop(if attached { END_WAIT } else { Duration::ZERO });
    }

    fn stop(&mut self, wait: Duration) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let groups = &self.loops.groups;
        groups.iter().for_each(|group| group.training_is_over());
        for (wait, signal) in [(wait, Signal::TERM), (TERMINATE_WAIT, Signal::KILL)] {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < wait {
                std::thread::sleep(LOOK_EVERY);
            }
            if !thread.is_finished() {
                groups.iter().for_each(|group| group.signal(signal));
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
    fn is_over(&self) -> bool {
        self.ranks.iter().any(|(_, group)| group.is_over())
    }

    fn run(&mut self) {
        let mut pause = PAUSE_MIN;
        while !self.is_over() {
            let since = Instant::now();
            let ended = self.live();
            if self.is_over() {
                return;
            }
            if self.gives_up(&ended) {
                return;
            }
            if since.elapsed() >= LIVED {
                pause = PAUSE_MIN;
            }
            let seconds = pause.as_secs();
            let whom = match self.ranks.len() {
                1 => "it is",
                _ => "all ranks are",
            };
            (self.notes)(&format!("{ended}; {whom} started again in {seconds} s"));
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.is_over() {
                std::thread::sleep(LOOK_EVERY);
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Counts an end; whether it was the last.
    fn gives_up(&mut self, ended: &str) -> bool {
        let lives = self.ranks.iter().map(|(_, group)| group.take_work());
        let (steps, trained) = lives.fold((0, false), |(steps, trained), (more, round)| {
            (steps + more, trained || round)
        });
        let gives_up = self.failures.note(ended, steps, trained);
        if gives_up {
            let count = self.failures.count();
            for (_, group) in &self.ranks {
                group.give_up(format!(
                    "{ended}; it ended {count} times before it had trained a round"
                ));
            }
        }
        gives_up
    }

    /// One life of the training loops; says how it ended.
    fn live(&mut self) -> String {
        let mut lives = Vec::new();
        let mut reason = None;
        for rank in 0..self.ranks.len() {
            match self.begin(rank) {
                Ok(life) => lives.push(life),
                Err(words) => {
                    reason = Some((words.clone(), words));
                    break;
                }
            }
        }
        if reason.is_none() {
            reason = self.first_end(&mut lives);
        }
        let last = self.end_all(&mut lives);
        let (words, text) = reason.unwrap_or(last);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.times += 1;
        ended.words = words;
        ended.text.clone_from(&text);
        text
    }

    /// Starts the training loop of a rank.
    fn begin(&self, rank: usize) -> Result<Life, String> {
        let (socket, group) = &self.ranks[rank];
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .env("MURMURATE_SOCKET", socket)
            .env("MURMURATE_SUPERVISED", "1")
            // Lines appear when they are printed.
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::from(io::stderr()))
            .stderr(Stdio::piped())
            .process_group(0);
        if self.ranks.len() > 1 {
            for name in ["RANK", "LOCAL_RANK", "MURMURATE_RANK"] {
                command.env(name, rank.to_string());
            }
            for name in ["WORLD_SIZE", "LOCAL_WORLD_SIZE", "MURMURATE_RANKS"] {
                command.env(name, self.ranks.len().to_string());
            }
        }
        let mut child = command.spawn().map_err(|error| {
            let program = self.command[0].to_string_lossy();
            format!("{program} cannot be started: {error}")
        })?;
        group.set(i32::try_from(child.id()).ok().and_then(Pid::from_raw));
        Ok(Life {
            rank,
            reader: child.stderr.take().map(Reader::start),
            child,
            end: None,
        })
    }

    /// Waits for the first end that is a reason to end the others too: its last words, and a line about it.
    /// None where all have ended: ranks that were left out, or training is over.
    fn first_end(&mut self, lives: &mut [Life]) -> Option<(String, String)> {
        while lives.iter().any(|life| life.end.is_none()) {
            for life in lives.iter_mut().filter(|life| life.end.is_none()) {
                let group = &self.ranks[life.rank].1;
                let left_out = group.is_left_out();
                if self.look(life) && !left_out && !self.is_over() {
                    return Some(self.about(life));
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }

    /// Reaps a process that has ended.
    fn look(&self, life: &mut Life) -> bool {
        let group = &self.ranks[life.rank].1;
        life.end = match group.reap(&mut life.child) {
            Ok(None) => return false,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        };
        group.set(None);
        true
    }

    /// The last words of a process that has ended, and a line about its end.
    fn about(&mut self, life: &mut Life) -> (String, String) {
        let reader = life.reader.take();
        let words = reader.map(|reader| reader.last_words(&mut self.shown));
        let words = words.unwrap_or_default();
        let who = match self.ranks.len() {
            1 => "the trainer".to_owned(),
            _ => format!("rank {} of the trainer", life.rank),
        };
        let status = life.end.as_deref().unwrap_or_default();
        // One that said nothing has its end alone to tell.
        if words.is_empty() {
            let text = format!("{who} ended ({status})");
            return (text.clone(), text);
        }
        let text = format!("{who} ended ({status}): {words}");
        (words, text)
    }

    /// Ends the processes that are left. Returns the last words of the last that ended by itself, and its end.
    fn end_all(&mut self, lives: &mut [Life]) -> (String, String) {
        let mut last = (String::new(), "the trainer ended".to_owned());
        for life in lives.iter_mut() {
            if life.end.is_none() {
                self.ranks[life.rank].1.signal(Signal::KILL);
                while !self.look(life) {
                    std::thread::sleep(LOOK_EVERY);
                }
                self.about(life);
            } else if life.reader.is_some() {
                last = self.about(life);
            }
        }
        last
    }
}
