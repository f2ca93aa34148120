//! The summary of a run in the log at level `info`: one line every ten seconds, however short
//! rounds are.

use crate::api::Status;
use murmurate_protocol::Event;
use std::time::{Duration, Instant};

/// Time between two lines. Rounds may take milliseconds, so a line for each would hide everything
/// else.
const EVERY: Duration = Duration::from_secs(10);

/// Counts since the last line.
#[derive(Debug)]
pub(super) struct Story {
    since: Instant,
    rounds: u64,
    voids: u64,
    alone: u64,
    expired_waits: u64,
    suspected: u64,
}

impl Story {
    /// Starts counting now.
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            rounds: 0,
            voids: 0,
            alone: 0,
            expired_waits: 0,
            suspected: 0,
        }
    }

    /// Counts an event.
    pub(super) fn observe(&mut self, event: &Event) {
        let count = match event {
            Event::RoundEnded { .. } => &mut self.rounds,
            Event::Voided { .. } => &mut self.voids,
            Event::Alone { .. } => &mut self.alone,
            Event::Waited { expired: true, .. } => &mut self.expired_waits,
            Event::Suspected { .. } => &mut self.suspected,
            _ => return,
        };
        *count += 1;
    }

    /// Logs one line if enough time has passed. Calls `status` only then.
    pub(super) fn tell(&mut self, status: impl FnOnce() -> Status) {
        if self.since.elapsed() < EVERY || !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let status = status();
        let evaluation = status.evaluation;
        tracing::info!(
            rounds_ended = self.rounds,
            inner_steps = status.inner_steps,
            loss = status.loss,
            accuracy = evaluation.and_then(|evaluation| evaluation.accuracy),
            peers = status.linked(),
            wire_bytes_sent = status.bytes_sent.wire,
            wire_bytes_received = status.bytes_received.wire,
            voids = self.voids,
            alone = self.alone,
            expired_waits = self.expired_waits,
            suspected = self.suspected,
            "training"
        );
        *self = Self::new();
    }
}
