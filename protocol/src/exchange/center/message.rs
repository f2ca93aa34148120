//! Messages of a run with a center.

use crate::{FragmentId, Round};
use serde::{Deserialize, Serialize};

/// A message between a worker and the owner of a shard of the center.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CenterMessage {
    /// The sender owns a shard of the center and lacks the version that the receiver has pulled:
    /// asks for it.
    Ask {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
    },
    /// The sender does not own the shard of the center that the receiver contributed to.
    Moved {
        /// The receiver's round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
    },
}

impl CenterMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "center-ask",
            Self::Moved { .. } => "center-moved",
        }
    }

    /// The round that the message is about, if it is about one.
    pub(crate) const fn round(&self) -> Option<Round> {
        match self {
            Self::Ask { .. } => None,
            Self::Moved { round, .. } => Some(*round),
        }
    }
}
