//! A question, its answer, and what answers are made of.

use crate::api::insight::Insight;
use crate::api::status::Status;
use crate::api::{About, Claims};
use serde::{Deserialize, Serialize};

words! {
    /// Subject of a question.
    #[derive(Default)]
    pub enum Topic {
        /// The wait of the round.
        #[default]
        Round = "round",
        /// Whose contribution counted.
        Contribution = "contribution",
        /// The time of a round.
        Slow = "slow",
        /// Why the accuracy fell.
        Accuracy = "accuracy",
    }
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The subject.
    pub what: Topic,
    /// About which round; without one, the present or the last one.
    pub round: Option<u64>,
    /// About which peer: the beginning of its id.
    pub peer: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The subject.
    pub what: Topic,
    /// The round that it is about.
    pub round: u64,
    /// The peers that it names as the cause, hexadecimal.
    pub peers: Vec<String>,
    /// The explanation.
    pub sentences: Vec<String>,
    /// The remedy.
    pub action: String,
}

/// The remedy where nothing is wrong.
pub(super) const NOTHING: &str = "Nothing to do.";

/// The same where rounds could be faster.
pub(super) const FASTER: &str =
    "Nothing is wrong; `murmurate why slow` says what would make rounds faster.";

impl Answer {
    /// There is something to do.
    pub fn asks_to_act(&self) -> bool {
        !matches!(self.action.as_str(), "" | NOTHING | FASTER)
    }

    pub(super) fn new(what: Topic, round: u64) -> Self {
        Self {
            what,
            round,
            action: NOTHING.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn say(mut self, sentence: impl Into<String>) -> Self {
        self.sentences.push(sentence.into());
        self
    }

    pub(super) fn act(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    pub(super) fn names(mut self, peers: &[String]) -> Self {
        self.peers = peers.to_vec();
        self
    }
}

/// Facts that answers are made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The status now.
    pub status: &'a Status,
    /// Memory of the daemon's rounds.
    pub insight: &'a Insight,
    /// Claims of other daemons.
    pub claims: &'a Claims,
    /// Facts about the daemon from its start.
    pub about: &'a About,
    /// Unix time, seconds.
    pub now: f64,
}
