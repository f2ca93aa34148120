//! Messages of a catch-up: states for newcomers, decisions of past rounds for stragglers.

use crate::limits::STATE_BYTES_MAX;
use crate::wire::WireError;
use crate::wire::check::ok;
use crate::{Round, StateId};
use serde::{Deserialize, Serialize};

/// A message between a peer that catches up and one that helps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TransferMessage {
    /// Asks a peer to keep a state for the sender to fetch.
    StateAsk {
        /// The sender cannot use a state that opens an earlier round.
        at_least: Round,
    },
    /// A state that can be fetched from the sender.
    StateOffer(StateId),
    /// The sender has no state to give.
    StateRefuse,
    /// Asks for the decisions of a past round.
    HistoryAsk {
        /// The round whose decisions the sender lacks.
        round: Round,
    },
    /// The sender does not have the decisions of that round.
    HistoryRefuse {
        /// The round.
        round: Round,
    },
}

impl TransferMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StateAsk { .. } => "state-ask",
            Self::StateOffer(_) => "state-offer",
            Self::StateRefuse => "state-refuse",
            Self::HistoryAsk { .. } => "history-ask",
            Self::HistoryRefuse { .. } => "history-refuse",
        }
    }

    pub(super) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::StateOffer(state) => ok(state.bytes <= STATE_BYTES_MAX, "state.bytes"),
            Self::StateAsk { .. }
            | Self::StateRefuse
            | Self::HistoryAsk { .. }
            | Self::HistoryRefuse { .. } => Ok(()),
        }
    }
}
