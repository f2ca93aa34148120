//! Messages of a run that pulls published parameters.

use crate::{FragmentId, Round};
use serde::{Deserialize, Serialize};

/// A message to a peer whose parameters are pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullMessage {
    /// Asks for the parameters that the receiver published last.
    Ask {
        /// The sender's round, by which it knows the answer.
        round: Round,
    },
    /// Asks for the receiver's iterate of a round, or the newest one before it.
    AskSince {
        /// The round, by which the sender knows the answer.
        round: Round,
        /// The newest round of which the sender has mixed an iterate of the receiver.
        taken: Option<Round>,
    },
    /// Answers [`PullMessage::AskSince`]: what the asker has mixed is new enough, and there is
    /// nothing newer for its round.
    Unchanged {
        /// The round that was asked for.
        round: Round,
    },
    /// Asks a member of a group for its last published parameters of a fragment, for the mean of a round.
    AskPart {
        /// The round of the mean.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
    },
    /// Asks for the mean of a fragment over the receiver's group of a round.
    AskMean {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// Set once the sender cannot wait for further parts of it.
        closes: bool,
    },
    /// Answers [`PullMessage::AskMean`]: there is no such mean, and there will be none.
    NoMean {
        /// The round that was asked for.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
    },
}

impl PullMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "pull-ask",
            Self::AskSince { .. } => "pull-ask-since",
            Self::Unchanged { .. } => "pull-unchanged",
            Self::AskPart { .. } => "pull-ask-part",
            Self::AskMean { .. } => "pull-ask-mean",
            Self::NoMean { .. } => "pull-no-mean",
        }
    }

    /// The oldest version of the wire that has the message.
    pub(crate) const fn since(&self) -> u8 {
        match self {
            Self::Ask { .. } => 7,
            _ => 8,
        }
    }

    pub(crate) const fn round(&self) -> Round {
        match self {
            Self::Ask { round }
            | Self::AskSince { round, .. }
            | Self::Unchanged { round }
            | Self::AskPart { round, .. }
            | Self::AskMean { round, .. }
            | Self::NoMean { round, .. } => *round,
        }
    }
}
