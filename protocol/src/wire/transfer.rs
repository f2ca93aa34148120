//! Messages of a catch-up: states for newcomers, decisions of past rounds for stragglers.

use crate::limits::STATE_BYTES_MAX;
use crate::wire::WireError;
use crate::wire::check::ok;
use crate::{Base, Digest, Round, StateId};
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
    StateOffer {
        /// The state.
        state: StateId,
        /// One hash over the parameters in it.
        anchor: Digest,
    },
    /// The sender has no state to give.
    StateRefuse,
    /// Asks for the decisions of a past round.
    HistoryAsk {
        /// The round whose decisions the sender lacks, and the parameters with which it begins it.
        began: Base,
    },
    /// The sender does not have the decisions of that round, or began it with other parameters.
    HistoryRefuse {
        /// The round.
        round: Round,
    },
    /// Asks with which parameters a round began.
    AnchorAsk {
        /// The round.
        round: Round,
    },
    /// With which parameters the sender began a round.
    Anchor {
        /// The round.
        round: Round,
        /// One hash over the parameters; `None` if it did not begin that round, or has forgotten it.
        anchor: Option<Digest>,
    },
}

impl TransferMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StateAsk { .. } => "state-ask",
            Self::StateOffer { .. } => "state-offer",
            Self::StateRefuse => "state-refuse",
            Self::HistoryAsk { .. } => "history-ask",
            Self::HistoryRefuse { .. } => "history-refuse",
            Self::AnchorAsk { .. } => "anchor-ask",
            Self::Anchor { .. } => "anchor",
        }
    }

    pub(super) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::StateOffer { state, .. } => ok(state.bytes <= STATE_BYTES_MAX, "state.bytes"),
            Self::StateAsk { .. }
            | Self::StateRefuse
            | Self::HistoryAsk { .. }
            | Self::HistoryRefuse { .. }
            | Self::AnchorAsk { .. }
            | Self::Anchor { .. } => Ok(()),
        }
    }
}
