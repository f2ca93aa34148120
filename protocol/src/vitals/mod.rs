//! Vitals: what a daemon says of itself so that others can show it. A signed summary, and the messages
//! that carry it.
//!
//! They are claims. Nothing that a [`Peer`](crate::Peer) decides depends on them, and they travel on
//! streams of their own.

mod message;
mod name;
mod signed;

pub use message::{Heard, Known, VitalsMessage};
pub use name::{DaemonName, NameError};
pub use signed::SignedVitals;

use crate::limits::{VITALS_VERSION_BYTES_MAX, VITALS_WAITING_MAX};
use crate::wire::WireError;
use crate::{PeerId, Phase, Round, Wait};
use serde::{Deserialize, Serialize};

/// What a daemon says of itself. What it does not know, or does not say, is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vitals {
    /// Whose vitals these are.
    pub peer: PeerId,
    /// Raised with every summary, over restarts too; the highest wins.
    pub sequence: u64,
    /// Unix time of the summary by the daemon's clock, milliseconds.
    pub unix_ms: u64,
    /// The name that its operator gave it.
    pub name: Option<DaemonName>,
    /// Version of the program.
    pub version: String,
    /// The round that it is in.
    pub round: Round,
    /// The phase of that round.
    pub phase: Phase,
    /// What it waits for.
    pub waiting: Option<WaitingFor>,
    /// Inner steps per second over the last rounds.
    pub steps_per_s: Option<f32>,
    /// Mean training loss of the last round.
    pub loss: Option<f32>,
    /// Share of correct predictions at its last evaluation, 0 to 1.
    pub accuracy: Option<f32>,
    /// The time of its last round.
    pub last_round: Option<RoundSeconds>,
    /// Resident memory in bytes.
    pub memory: Option<u64>,
    /// The round of its last checkpoint.
    pub saved_round: Option<Round>,
}

/// What a daemon waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFor {
    /// The kind of wait.
    pub wait: Wait,
    /// Some of the peers that it is for.
    pub peers: Vec<PeerId>,
}

/// The parts of a round's time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundSeconds {
    /// Inner steps.
    pub train: f32,
    /// The exchange, apart from waits for others.
    pub exchange: f32,
    /// Waits until others were as far.
    pub wait: f32,
}

impl Vitals {
    /// A number as vitals carry it; none if it is not finite or below zero.
    pub fn amount(value: f64) -> Option<f32> {
        let value = value as f32;
        (value.is_finite() && value >= 0.0).then_some(value)
    }

    /// A loss as vitals carry it; none if it is not finite. A loss may be below zero.
    pub fn loss(value: f64) -> Option<f32> {
        let value = value as f32;
        value.is_finite().then_some(value)
    }

    /// Checks lengths and ranges.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field.
    pub fn check(&self) -> Result<(), WireError> {
        let amount = |value: f32| value.is_finite() && value >= 0.0;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        let version = &self.version;
        let parts = self.last_round.iter();
        let rules = [
            (
                "vitals.version",
                version.len() <= VITALS_VERSION_BYTES_MAX && version.chars().all(plain),
            ),
            (
                "vitals.waiting",
                self.waiting
                    .as_ref()
                    .is_none_or(|waiting| waiting.peers.len() <= VITALS_WAITING_MAX),
            ),
            ("vitals.steps_per_s", self.steps_per_s.is_none_or(amount)),
            ("vitals.loss", self.loss.is_none_or(f32::is_finite)),
            (
                "vitals.accuracy",
                self.accuracy
                    .is_none_or(|share| (0.0..=1.0).contains(&share)),
            ),
            (
                "vitals.last_round",
                parts
                    .flat_map(|parts| [parts.train, parts.exchange, parts.wait])
                    .all(amount),
            ),
        ];
        match rules.iter().find(|(_, holds)| !holds) {
            None => Ok(()),
            Some((field, _)) => Err(WireError::OutOfRange {
                field: (*field).to_owned(),
            }),
        }
    }
}
