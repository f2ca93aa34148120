//! Metrics of a run in files: one line of JSON for each finished round, and the same values for
//! TensorBoard. The driver never waits for the disk: a bounded queue leads to a writer thread. If the
//! disk fails, the files end with one message and training continues.

mod event_file;
mod files;
mod line;

pub(crate) use line::{Line, RateFact};

use crate::api::Figures;
use crate::events::unix_s;
use crate::unit::Unit;
use files::Files;
use murmurate_protocol::{Evaluation, Event, Phase};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Lines that may wait in the queue. A disk that is slower than this for long loses lines, not time.
const LINES_WAITING_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Metrics {
    dir: PathBuf,
    unit: Unit,
    rate: RateFact,
    /// The counters at the end of the last line.
    before: Figures,
    /// A finished round whose evaluation may follow.
    open: Option<Line>,
    queue: Option<SyncSender<Line>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    lost: u64,
    told: bool,
}

impl Metrics {
    /// Creates the files in `dir/<first 8 digits of the peer's id>`.
    ///
    /// # Errors
    /// If they cannot be created, or the thread cannot start.
    pub(crate) fn start(
        dir: &Path,
        peer: &str,
        unit: Unit,
        rate: RateFact,
        before: Figures,
    ) -> io::Result<Self> {
        let short: String = peer.chars().take(8).collect();
        let dir = dir.join(short);
        let files = Files::create(&dir, unix_s())?;
        let (queue, lines) = sync_channel(LINES_WAITING_MAX);
        let writer = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || write_all(files, &lines))?;
        Ok(Self {
            dir,
            unit,
            rate,
            before,
            open: None,
            queue: Some(queue),
            writer: Some(writer),
            lost: 0,
            told: false,
        })
    }

    /// Takes an event of the peer. `figures` are the daemon's counters now.
    pub(crate) fn observe(&mut self, event: &Event, figures: impl FnOnce() -> Figures) {
        match event {
            Event::RoundEnded { round, seconds, .. } => {
                self.write();
                let now = figures();
                let mut line = Line::of(round.0 + 1, &self.before, &now, self.rate.at(round.0));
                (line.unix_s, line.round_s) = (unix_s(), Some(*seconds));
                line.exchange_s = Some((seconds - line.train_s).max(0.0));
                self.before = now;
                self.open = Some(line);
            }
            Event::Evaluated { round, evaluation } => {
                self.evaluated(round.0, evaluation, figures);
            }
            Event::Phase { phase, .. } if *phase != Phase::Settle => self.write(),
            _ => {}
        }
    }

    fn evaluated(
        &mut self,
        round: u64,
        evaluation: &Evaluation,
        figures: impl FnOnce() -> Figures,
    ) {
        if self.open.as_ref().is_some_and(|line| line.round != round) {
            self.write();
        }
        let mut line = match self.open.take() {
            Some(line) => line,
            // Parameters that were fetched or restored: no round of this life led to them.
            None => {
                let now = figures();
                let mut line = Line::of(round, &self.before, &now, self.rate.at(round));
                line.unix_s = unix_s();
                self.before = now;
                line
            }
        };
        line.evaluate(evaluation, self.unit);
        self.open = Some(line);
        self.write();
    }

    /// Queues the open line.
    fn write(&mut self) {
        let Some(line) = self.open.take() else {
            return;
        };
        let Some(queue) = &self.queue else {
            return;
        };
        match queue.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.lost += 1,
            // The writer has ended; `trouble` says why.
            Err(TrySendError::Disconnected(_)) => self.queue = None,
        }
    }

    /// Why the files ended early, as one line. Returned once.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        let ended = self.writer.as_ref().is_some_and(JoinHandle::is_finished);
        if !ended || self.told {
            return None;
        }
        let error = self.end()?;
        self.told = true;
        let dir = self.dir.display();
        Some(format!(
            "metrics in {dir} end here: {error}; training goes on without them"
        ))
    }

    fn end(&mut self) -> Option<io::Error> {
        self.queue = None;
        match self.writer.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(io::Error::other("the writer stopped with a bug")),
        }
    }

    /// Writes what waits and ends the thread. Returns a line where that failed, or where lines were lost.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.write();
        let dir = self.dir.display().to_string();
        if let Some(error) = self.end().filter(|_| !self.told) {
            return Some(format!("metrics in {dir} are not complete: {error}"));
        }
        let lost = self.lost;
        (lost > 0).then(|| format!("metrics in {dir} lack {lost} rounds: the disk was too slow"))
    }
}

fn write_all(mut files: Files, lines: &Receiver<Line>) -> io::Result<()> {
    while let Ok(line) = lines.recv() {
        files.write(&line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
