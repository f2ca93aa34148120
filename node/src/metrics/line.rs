//! One line of metrics: the values of a finished round. Programs read the names of its fields, so they
//! are an interface: docs/operations.md.

use crate::api::Figures;
use crate::unit::Unit;
use murmurate_protocol::Evaluation;
use murmurate_strategies::inner::Rate;
use serde::{Deserialize, Serialize};

/// The learning rate by round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateFact {
    /// The inner optimizer's; `None` where the trainer has its own.
    pub lr: Option<f64>,
    /// The factor of the schedule.
    pub factor: Rate,
}

impl RateFact {
    /// Rate and factor in the middle of a round.
    pub(crate) fn at(&self, round: u64) -> (Option<f64>, f64) {
        let factor = self.factor.at(round as f64 + 0.5);
        (self.lr.map(|lr| lr * factor), factor)
    }
}

/// The values of one finished round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Unix time in seconds.
    pub unix_s: f64,
    /// Rounds that have ended, this one included.
    pub round: u64,
    /// Inner steps of this daemon in all.
    pub step: u64,
    /// Samples of this daemon in all.
    pub samples: u64,
    /// Mean training loss of the round's inner steps, in nats.
    pub loss: Option<f64>,
    /// The inner learning rate in the middle of the round; null where an attached loop has its own.
    pub learning_rate: Option<f64>,
    /// The schedule's factor on it.
    pub rate_factor: f64,
    /// Seconds of the round.
    pub round_s: Option<f64>,
    /// Seconds of it in inner steps.
    pub train_s: f64,
    /// Seconds of it in everything else: the exchange and its waits.
    pub exchange_s: Option<f64>,
    /// Bytes on the wire since the line before.
    pub bytes_sent: u64,
    /// Bytes from the wire since the line before.
    pub bytes_received: u64,
    /// Linked peers.
    pub peers: u64,
    /// Mean loss on held-out data, in nats; null where the round was not evaluated, as all below.
    pub test_loss: Option<f64>,
    /// Share of held-out samples that are classified correctly.
    pub test_accuracy: Option<f64>,
    /// Share whose class is among the five most likely, with ten or more classes.
    pub test_top_5: Option<f64>,
    /// `exp(test_loss)`, of language models.
    pub perplexity: Option<f64>,
    /// `test_loss` in bits, divided by the bytes of a token, of language models.
    pub bits_per_byte: Option<f64>,
}

impl Line {
    /// The line of a round between two readings of the counters.
    pub(super) fn of(
        round: u64,
        before: &Figures,
        now: &Figures,
        (learning_rate, rate_factor): (Option<f64>, f64),
    ) -> Self {
        Self {
            round,
            step: now.inner_steps,
            samples: now.samples,
            loss: now.loss,
            learning_rate,
            rate_factor,
            train_s: (now.train_s - before.train_s).max(0.0),
            bytes_sent: now.bytes_sent.saturating_sub(before.bytes_sent),
            bytes_received: now.bytes_received.saturating_sub(before.bytes_received),
            peers: now.peers,
            ..Self::default()
        }
    }

    pub(super) fn evaluate(&mut self, found: &Evaluation, unit: Unit) {
        let text = unit.of_text(found.loss);
        self.test_loss = Some(found.loss);
        self.test_accuracy = found.accuracy;
        self.test_top_5 = found.top_5;
        self.perplexity = text.map(|(perplexity, _)| perplexity);
        self.bits_per_byte = text.map(|(_, bits)| bits);
    }

    /// The values for TensorBoard, each with its tag.
    pub(super) fn scalars(&self) -> Vec<(&'static str, f64)> {
        let count = |value: u64| Some(value as f64);
        let all = [
            ("loss/train", self.loss),
            ("loss/test", self.test_loss),
            ("accuracy/test", self.test_accuracy),
            ("accuracy/top_5", self.test_top_5),
            ("text/perplexity", self.perplexity),
            ("text/bits_per_byte", self.bits_per_byte),
            ("rate/learning_rate", self.learning_rate),
            ("rate/factor", Some(self.rate_factor)),
            ("time/round_s", self.round_s),
            ("time/train_s", Some(self.train_s)),
            ("time/exchange_s", self.exchange_s),
            ("bytes/sent", count(self.bytes_sent)),
            ("bytes/received", count(self.bytes_received)),
            ("total/inner_steps", count(self.step)),
            ("total/samples", count(self.samples)),
            ("total/peers", count(self.peers)),
        ];
        let known = all.into_iter();
        known
            .filter_map(|(tag, value)| Some((tag, value?)))
            .collect()
    }
}
