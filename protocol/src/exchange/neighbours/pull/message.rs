//! Messages of a run that pulls published parameters.

use crate::Round;
use serde::{Deserialize, Serialize};

/// A message to a peer whose parameters are pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullMessage {
    /// Asks for the parameters that the receiver published last.
    Ask {
        /// The sender's round, by which it knows the answer.
        round: Round,
    },
}

impl PullMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "pull-ask",
        }
    }

    /// The round that the message is about.
    pub(crate) const fn round(&self) -> Round {
        match self {
            Self::Ask { round } => *round,
        }
    }
}
