//! Writes the log, and keeps the last entries in memory for pages that follow them: `events.jsonl` is
//! written, and `events.1.jsonl` to `events.3.jsonl` are older. In memory each kind has a place of its own
//! there, so that what happens in every round does not push out what happens seldom.

use super::entry::{Entry, Kind, VERSION};
use super::read::{FILE_BYTES_MAX, FILES, last_seq, path};
use super::told::told;
use crate::lines::Lines;
use murmurate_protocol::{Event, PeerId, Time, Waiting};
use std::collections::{HashMap, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};
use tokio::sync::watch;

const LINES_WAITING_MAX: usize = 4096;

/// Bytes that the writer thread takes together.
const BATCH_BYTES: usize = 64 << 10;

/// A wait that is longer than this is told while it lasts.
const LONG_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct EventLog {
    daemon: String,
    recent: Recent,
    seq: u64,
    queue: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    /// Entries that found the queue full, since the last that did not.
    lost: u64,
    /// Entries that the writer could not write, since they were last told of.
    unwritten: Arc<AtomicU64>,
    /// When the wait that was told last began.
    told: Option<Time>,
}

impl EventLog {
    pub(crate) fn in_memory(daemon: &str) -> Self {
        Self {
            daemon: daemon.to_owned(),
            recent: Recent::default(),
            seq: 0,
            queue: None,
            writer: None,
            lost: 0,
            unwritten: Arc::default(),
            told: None,
        }
    }

    /// Opens the log in a daemon's directory, and goes on with its numbers.
    ///
    /// # Errors
    /// If the file cannot be opened, or the thread cannot start.
    pub(crate) fn open(dir: &Path, daemon: &str) -> io::Result<Self> {
        let seq = last_seq(dir);
        let files = Files::open(dir, FILE_BYTES_MAX)?;
        let (queue, lines) = sync_channel(LINES_WAITING_MAX);
        let unwritten = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&unwritten);
        let writer = std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || write_all(files, &lines, &counter))?;
        let mut log = Self::in_memory(daemon);
        (log.seq, log.unwritten) = (seq, unwritten);
        (log.queue, log.writer) = (Some(queue), Some(writer));
        Ok(log)
    }

    /// The last entries, for pages.
    pub(crate) fn recent(&self) -> Recent {
        self.recent.clone()
    }

    /// Takes an event of the peer, which is in `round`.
    pub(crate) fn observe(&mut self, now: Time, round: u64, event: &Event) {
        if let Some((of, kind)) = told(event) {
            self.add(now, of.map_or(round, |of| of.0), kind);
        }
    }

    /// Tells of a wait that is long, once.
    pub(crate) fn waits(&mut self, now: Time, round: u64, waits: &[Waiting]) {
        let Some(longest) = waits.iter().min_by_key(|wait| wait.since) else {
            return;
        };
        let waited = now.since(longest.since);
        if waited < LONG_WAIT || self.told == Some(longest.since) {
            return;
        }
        self.told = Some(longest.since);
        let kind = Kind::Waiting {
            what: longest.wait.word().to_owned(),
            peers: longest.peers.iter().map(PeerId::to_hex).collect(),
            waited_s: waited.as_secs_f64(),
            deadline_s: longest.deadline.since(now).as_secs_f64(),
        };
        self.add(now, round, kind);
    }

    pub(crate) fn add(&mut self, now: Time, round: u64, kind: Kind) {
        self.lost += self.unwritten.swap(0, Ordering::Relaxed);
        if self.lost > 0 {
            let count = self.lost;
            if self.put(now, round, Kind::Lost { count }) {
                self.lost = 0;
            }
        }
        if !self.put(now, round, kind) {
            self.lost += 1;
        }
    }

    /// Adds an entry, unless the queue is full.
    fn put(&mut self, now: Time, round: u64, kind: Kind) -> bool {
        self.seq += 1;
        let entry = Entry {
            v: VERSION,
            seq: self.seq,
            time: now.as_secs_f64(),
            daemon: self.daemon.clone(),
            round,
            kind,
        };
        // Infinite and absent numbers become null: an entry always has a text.
        let Ok(mut line) = serde_json::to_string(&entry) else {
            return true;
        };
        self.recent.push(self.seq, &entry.kind, &line);
        line.push('\n');
        match &self.queue {
            None => true,
            Some(queue) => match queue.try_send(line) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => false,
                Err(TrySendError::Disconnected(_)) => {
                    unreachable!("the writer ends after the queue")
                }
            },
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // What waits is written.
            let _ = writer.join();
        }
    }
}

/// Writes lines until the queue is closed; those that wait go together. What a disk that failed or is
/// full does not take is lost and counted, and the next lines are tried again.
fn write_all(mut files: Files, lines: &Receiver<String>, unwritten: &AtomicU64) {
    let mut failing = false;
    while let Ok(mut batch) = lines.recv() {
        let mut entries = 1;
        while batch.len() < BATCH_BYTES
            && let Ok(line) = lines.try_recv()
        {
            batch.push_str(&line);
            entries += 1;
        }
        let written = files.write(batch.as_bytes());
        if let Err(error) = &written {
            unwritten.fetch_add(entries, Ordering::Relaxed);
            if !failing {
                // Not louder: a daemon whose disk is full ends with one line, that of its checkpoint.
                tracing::info!(%error, "events are lost: their log cannot be written");
            }
        }
        failing = written.is_err();
    }
}

/// Entries of each kind in memory.
pub const OF_KIND_MAX: usize = 256;

/// An entry: its number, and its line of JSON.
pub type Line = (u64, Arc<str>);

/// The last entries as lines of JSON, shared between the daemon and its HTTP server.
#[derive(Clone, Debug)]
pub struct Recent {
    lines: Arc<Mutex<HashMap<Discriminant<Kind>, VecDeque<Line>>>>,
    newest: Arc<watch::Sender<u64>>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            lines: Arc::default(),
            newest: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Recent {
    fn push(&self, seq: u64, kind: &Kind, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = lines.entry(discriminant(kind)).or_default();
        alike.push_back((seq, line.into()));
        if alike.len() > OF_KIND_MAX {
            alike.pop_front();
        }
        drop(lines);
        self.newest.send_replace(seq);
    }

    /// The entries after number `seq` that are still here, oldest first, this many at most.
    pub fn after(&self, seq: u64, most: usize) -> Vec<Line> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = lines.values().flat_map(|alike| {
            let newest_first = alike.iter().rev();
            newest_first.take_while(|(number, _)| *number > seq)
        });
        let mut newer: Vec<Line> = newer.cloned().collect();
        newer.sort_unstable_by_key(|(number, _)| *number);
        newer.truncate(most);
        newer
    }

    /// The number of the newest entry, and its changes.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    lines: Lines,
    most: u64,
}

impl Files {
    pub(super) fn open(dir: &Path, most: u64) -> io::Result<Self> {
        Ok(Self {
            dir: dir.to_owned(),
            lines: Lines::open(&path(dir, 0))?,
            most,
        })
    }

    /// Appends lines that each end with a line feed. Begins a new file first if these would not fit.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.lines.bytes() > 0 && self.lines.bytes() + lines.len() as u64 > self.most {
            // Not there, the file is moved away already: the new one could not be opened.
            let last = if path(&self.dir, 0).exists() {
                FILES - 1
            } else {
                0
            };
            for number in (0..last).rev() {
                match fs::rename(path(&self.dir, number), path(&self.dir, number + 1)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            *self = Self::open(&self.dir, self.most)?;
        }
        self.lines.write(lines)
    }
}
