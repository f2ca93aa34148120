//! The peer: a value that time, messages and finished work go into, and sends, deadlines and work
//! orders come out of.

mod event;
mod input;
mod output;
mod phase;
mod snapshot;

pub use event::{Event, Wait};
pub use input::{Evaluated, FetchId, Input};
pub use output::Output;
pub use phase::Phase;
pub use snapshot::{SNAPSHOT_VERSION, Snapshot};

use crate::Time;
use core::time::Duration;

/// What is this peer's own business: no other peer need agree.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerConfig {
    /// Who this peer is.
    pub me: crate::PeerId,
    /// Seed of its only source of randomness.
    pub seed: u64,
    /// How many peers, itself included, a fresh run waits for before its first round.
    pub start_with: usize,
    /// How long it waits for them.
    pub start_wait: Duration,
    /// Whether it joins a run that others began: it trains nothing before it has their state.
    pub join: bool,
    /// How often it writes a checkpoint; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// Look at held data after every so many rounds; zero for only at the end.
    pub evaluate_every: u64,
}

/// A rule that a remote broke. The peer's state is unchanged but for the remote's score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A message that makes no sense from this peer at this time.
    #[error("{what}")]
    Unexpected {
        /// In words.
        what: String,
    },
    /// Bytes that are not a message.
    #[error("malformed message: {0}")]
    Malformed(crate::wire::WireError),
}

/// The earliest of two optional times.
pub(crate) fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
