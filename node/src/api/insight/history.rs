//! What each round cost: time, bytes and results. The newest rounds are kept one by one, older ones
//! thinner and thinner.

use super::ledger::RoundResult;
use murmurate_protocol::{Phase, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Points that are kept. Beyond that, every second of the older half goes: of the rounds with an evaluation,
/// which are few, and of the others.
pub(super) const POINTS_MAX: usize = 4096;

/// The counters of a daemon at one moment, without what takes time to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Inner steps in all, including earlier lives.
    pub inner_steps: u64,
    /// Samples in all, including earlier lives.
    pub samples: u64,
    /// Seconds spent in inner steps.
    pub train_s: f64,
    /// Mean training loss of the last round.
    pub loss: Option<f64>,
    /// Bytes sent on the wire.
    pub bytes_sent: u64,
    /// Bytes received from the wire.
    pub bytes_received: u64,
    /// Linked peers.
    pub peers: u64,
}

/// One round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// The round.
    pub round: u64,
    /// Unix time at its end, seconds.
    pub unix_s: f64,
    /// From its start to its end, seconds.
    pub seconds: f64,
    /// Spent in inner steps, seconds.
    pub train_s: f64,
    /// Spent waiting until other peers were as far, seconds.
    pub wait_s: f64,
    /// Spent in the exchange apart from that, seconds.
    pub exchange_s: f64,
    /// Mean training loss.
    pub loss: Option<f64>,
    /// Loss on held-out data of the parameters that the round led to.
    pub eval_loss: Option<f64>,
    /// Accuracy on held-out data of the parameters that the round led to, 0 to 1.
    pub accuracy: Option<f64>,
    /// Bytes sent on the wire.
    pub bytes_sent: u64,
    /// Bytes received from the wire.
    pub bytes_received: u64,
    /// End of the round, where that is known.
    pub result: Option<RoundResult>,
    /// The peers that it waited for the longest, each with seconds.
    pub waited_for: Vec<(String, f64)>,
}

/// The last rounds.
#[derive(Clone, Debug, Default)]
pub struct History {
    points: VecDeque<Point>,
}

impl History {
    /// Adds a round.
    pub fn push(&mut self, point: Point) {
        self.points.push_back(point);
        if self.points.len() > POINTS_MAX {
            let older = self.points.len() / 2;
            let mut seen = [0, 0];
            self.points.retain(|point| {
                let recent = seen[0] + seen[1] >= older;
                let alike = &mut seen[usize::from(point.eval_loss.is_some())];
                *alike += 1;
                recent || *alike % 2 == 1
            });
        }
    }

    /// Adds an evaluation of the parameters at the start of a round.
    pub(super) fn evaluated(&mut self, round: u64, loss: f64, accuracy: Option<f64>) {
        // Parameters that no round of this life led to have no point.
        let mut newest_first = self.points.iter_mut().rev();
        if let Some(point) = newest_first.find(|point| point.round + 1 == round) {
            (point.eval_loss, point.accuracy) = (Some(loss), accuracy);
        }
    }

    /// All rounds that are kept, oldest first.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter()
    }

    /// The last rounds, oldest first, this many at most.
    pub fn last(&self, rounds: usize) -> impl Iterator<Item = &Point> {
        let skipped = self.points.len().saturating_sub(rounds);
        self.points.iter().skip(skipped)
    }
}

/// The round that is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    pub(super) train_s: f64,
    pub(super) wait_s: f64,
    exchange_s: f64,
    exchanging: Option<Time>,
    before: Figures,
}

impl Open {
    pub(super) fn phase(&mut self, now: Time, phase: Phase) {
        if let Some(since) = self.exchanging.take() {
            self.exchange_s += now.since(since).as_secs_f64();
        }
        if phase == Phase::Exchange {
            self.exchanging = Some(now);
        }
    }

    /// The round ended: its point, and begins the next one.
    pub(super) fn end(&mut self, now: Time, round: u64, seconds: f64, after: &Figures) -> Point {
        self.phase(now, Phase::Settle);
        let before = self.before;
        let point = Point {
            round,
            unix_s: now.as_secs_f64(),
            seconds,
            train_s: self.train_s,
            wait_s: self.wait_s,
            exchange_s: (self.exchange_s - self.wait_s).max(0.0),
            loss: after.loss,
            bytes_sent: after.bytes_sent.saturating_sub(before.bytes_sent),
            bytes_received: after.bytes_received.saturating_sub(before.bytes_received),
            ..Point::default()
        };
        *self = Self {
            before: *after,
            ..Self::default()
        };
        point
    }
}
