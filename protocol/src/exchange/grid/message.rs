//! What the peers of a grid say to each other beside their columns' agreement.

use crate::limits::ROLL_CHANGE_BYTES_MAX;
use crate::wire::check::ok;
use crate::wire::{PeerRecord, WireError};
use crate::{Digest, FragmentId, RollChange, Round};
use serde::{Deserialize, Serialize};

/// A message between peers of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GridMessage {
    /// To the member that makes the note of the column that decides about the roll: what the sender
    /// saw in its row, and who asked it to be let in.
    Report {
        /// The round.
        round: Round,
        /// What should change.
        change: RollChange,
    },
    /// Asks how a fragment's round ended. Answered with the decision, once there is one.
    Ask {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
    },
    /// The sender is in the receiver's round with another anchor or roll.
    Apart {
        /// The round.
        round: Round,
        /// The sender's anchor and roll.
        state: Digest,
    },
    /// The sender wants a place in the roll.
    Apply(PeerRecord),
    /// The receiver has a place in the roll from this round on.
    Placed {
        /// The round.
        round: Round,
    },
    /// To the sender's row: it came back in this round, so others hand down its column's result.
    Returned {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
    },
}

impl GridMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Report { .. } => "report",
            Self::Ask { .. } => "ask",
            Self::Apart { .. } => "apart",
            Self::Apply(_) => "apply",
            Self::Placed { .. } => "placed",
            Self::Returned { .. } => "returned",
        }
    }

    /// The round that the message is about, if it is about one.
    pub(crate) const fn round(&self) -> Option<Round> {
        match self {
            Self::Report { round, .. }
            | Self::Ask { round, .. }
            | Self::Apart { round, .. }
            | Self::Placed { round }
            | Self::Returned { round, .. } => Some(*round),
            Self::Apply(_) => None,
        }
    }

    pub(crate) fn records(&self) -> &[PeerRecord] {
        match self {
            Self::Report { change, .. } => &change.join,
            Self::Apply(record) => std::slice::from_ref(record),
            Self::Ask { .. } | Self::Apart { .. } | Self::Placed { .. } | Self::Returned { .. } => {
                &[]
            }
        }
    }

    /// Checks every count and range.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Report { change, .. } => {
                ok(
                    change.leave.len() <= ROLL_CHANGE_BYTES_MAX / 32,
                    "report.leave",
                )?;
                change.join.iter().try_for_each(PeerRecord::check)
            }
            Self::Apply(record) => record.check(),
            Self::Ask { fragment, .. } | Self::Returned { fragment, .. } => {
                crate::wire::check::fragment(*fragment)
            }
            Self::Apart { .. } | Self::Placed { .. } => Ok(()),
        }
    }
}
