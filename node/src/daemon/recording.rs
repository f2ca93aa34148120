//! Writes the record of this daemon's peer. The driver never waits for the disk: a bounded queue
//! leads to a writer thread. If the queue overflows or the disk fails, the record ends and training
//! continues.

use crate::daemon::DaemonError;
use murmurate_protocol::record::{EntryBytes, Framer, RecordHeader, Recorder};
use murmurate_protocol::{Input, Output, Time};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

const ENTRIES_WAITING_MAX: usize = 4096;

/// Bytes that may wait in the queue, which bounds the memory that a slow disk costs.
const BYTES_WAITING_MAX: usize = 16 << 20;

/// Bytes that are collected into one write while more entries wait.
const BATCH_BYTES: usize = 64 << 10;

/// The program's version, which a record contains and a replay requires.
pub const BINARY: &str = env!("CARGO_PKG_VERSION");

/// A destination of a record.
trait Sink: Write + Send + 'static {
    /// Flushes the written bytes to stable storage.
    fn sync(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The running record.
#[derive(Debug)]
pub(super) struct Recording {
    path: PathBuf,
    recorder: Recorder,
    /// The queue to the writer; `None` after the record has ended.
    queue: Option<SyncSender<EntryBytes>>,
    waiting: Arc<AtomicUsize>,
    writer: Option<JoinHandle<io::Result<()>>>,
    /// Why the record ended early, until [`Self::trouble`] has returned it.
    trouble: Option<String>,
    told: bool,
}

impl Recording {
    /// Refuses a path that exists, because a record is never overwritten.
    pub(super) fn check(path: &Path) -> Result<(), DaemonError> {
        match path.symlink_metadata() {
            Ok(_) => Err(refused(path, &io::ErrorKind::AlreadyExists.into())),
            Err(_) => Ok(()),
        }
    }

    /// Creates the file, writes the header, and starts the writer.
    pub(super) fn start(path: &Path, header: &RecordHeader) -> Result<Self, DaemonError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|e| refused(path, &e))?;
        Self::start_in(file, path, header)
    }

    fn start_in(
        mut sink: impl Sink,
        path: &Path,
        header: &RecordHeader,
    ) -> Result<Self, DaemonError> {
        let (framer, opening) = Framer::start(BINARY, header)
            .map_err(|e| refused(path, &io::Error::other(e.to_string())))?;
        sink.write_all(&opening).map_err(|e| refused(path, &e))?;
        let (queue, entries) = sync_channel(ENTRIES_WAITING_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&waiting);
        let writer = std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(move || write_all(sink, framer, &entries, &written))
            .map_err(DaemonError::Runtime)?;
        Ok(Self {
            path: path.to_owned(),
            recorder: Recorder::new(),
            queue: Some(queue),
            waiting,
            writer: Some(writer),
            trouble: None,
            told: false,
        })
    }

    /// Appends an input that the peer is about to handle.
    pub(super) fn input(&mut self, now: Time, input: &Input) {
        if self.queue.is_none() {
            return;
        }
        match self.recorder.input(now, input) {
            Ok(entry) => self.put(entry),
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    pub(super) fn output(&mut self, output: &Output) {
        if self.queue.is_some() {
            self.recorder.output(output);
        }
    }

    /// Why the record ended early, as one line. Returned once.
    pub(super) fn trouble(&mut self) -> Option<String> {
        let trouble = self.trouble.take();
        self.told |= trouble.is_some();
        trouble
    }

    /// Ends the record and waits for the writer. Returns the reason if the record ended early.
    pub(super) fn finish(&mut self) -> Option<String> {
        if self.queue.is_some()
            && let Ok(end) = self.recorder.end()
        {
            self.put(end);
        }
        self.queue = None;
        if let Some(error) = self.written() {
            self.trouble.get_or_insert(error);
        }
        // After an overflow the writer reports the same problem again.
        self.trouble.take().filter(|_| !self.told)
    }

    fn put(&mut self, entry: EntryBytes) {
        let bytes = entry.as_bytes().len();
        let waiting = self.waiting.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if waiting > BYTES_WAITING_MAX {
            return self.give_up("the disk is too slow");
        }
        let Some(queue) = &self.queue else {
            return;
        };
        match queue.try_send(entry) {
            Ok(()) => {}
            Err(std::sync::mpsc::TrySendError::Full(_)) => self.give_up("the disk is too slow"),
            // The writer has ended already, so waiting for it takes no time.
            Err(std::sync::mpsc::TrySendError::Disconnected(_)) => {
                self.queue = None;
                self.trouble = Some(self.written().unwrap_or_else(|| self.line("it ended")));
            }
        }
    }

    /// Ends the record early; the writer marks the place after the queued entries.
    fn give_up(&mut self, reason: &str) {
        self.queue = None;
        self.trouble = Some(self.line(reason));
    }

    /// The writer's error, once it has ended.
    fn written(&mut self) -> Option<String> {
        let outcome = self.writer.take()?.join();
        match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(self.line(&error.to_string())),
            Err(_) => Some(self.line("its thread ended with a bug")),
        }
    }

    fn line(&self, reason: &str) -> String {
        format!(
            "--record: {} ends here: {reason}; training continues, and the record up to here can be replayed",
            self.path.display()
        )
    }
}

fn refused(path: &Path, error: &io::Error) -> DaemonError {
    let reason = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "it exists, and a record is never overwritten: give another name".to_owned()
        }
        _ => format!("it cannot be written: {error}"),
    };
    DaemonError::Record {
        path: path.to_owned(),
        reason,
    }
}

/// The writer thread: writes until the queue is closed or the disk fails.
fn write_all(
    mut sink: impl Sink,
    mut framer: Framer,
    entries: &Receiver<EntryBytes>,
    waiting: &AtomicUsize,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(2 * BATCH_BYTES);
    let mut ended = false;
    while let Ok(entry) = entries.recv() {
        let mut next = Some(entry);
        while let Some(entry) = next.take() {
            waiting.fetch_sub(entry.as_bytes().len(), Ordering::AcqRel);
            framer.frame(&entry, &mut batch);
            ended = entry.is_end();
            if batch.len() < BATCH_BYTES {
                next = entries.try_recv().ok();
            }
        }
        // If the process is killed, bytes in memory are lost, so write all of them when the queue
        // is empty.
        sink.write_all(&batch)?;
        batch.clear();
    }
    if !ended {
        framer.cut("the daemon could not continue the record", &mut batch);
        sink.write_all(&batch)?;
    }
    sink.flush()?;
    sink.sync()
}

#[cfg(test)]
mod tests;
