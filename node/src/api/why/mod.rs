//! Explains in sentences why a round does not end, why a contribution did not count, and why rounds are
//! slow. Every answer ends in one action, or in "nothing to do".

mod contribution;
mod round;
mod slow;
mod words;

use super::{Insight, Status};
use serde::{Deserialize, Serialize};

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What the round waits for.
    #[default]
    Round,
    /// Whose contribution counted.
    Contribution,
    /// What takes the time of a round.
    Slow,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// What about.
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
    /// What about.
    pub what: Topic,
    /// The round that it is about.
    pub round: u64,
    /// The peers that it names as the cause, hexadecimal.
    pub peers: Vec<String>,
    /// The explanation.
    pub sentences: Vec<String>,
    /// What to do.
    pub action: String,
}

/// What there is to do where nothing is wrong.
pub(super) const NOTHING: &str = "Nothing to do.";

impl Answer {
    fn new(what: Topic, round: u64) -> Self {
        Self {
            what,
            round,
            action: NOTHING.to_owned(),
            ..Self::default()
        }
    }

    fn say(mut self, sentence: impl Into<String>) -> Self {
        self.sentences.push(sentence.into());
        self
    }

    fn act(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    fn names(mut self, peers: &[String]) -> Self {
        self.peers = peers.to_vec();
        self
    }
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The status now.
    pub status: &'a Status,
    /// What the daemon remembers.
    pub insight: &'a Insight,
    /// Unix time, seconds.
    pub now: f64,
}

/// Answers a question.
pub fn why(facts: &Facts<'_>, question: &Question) -> Answer {
    let peer = match question
        .peer
        .as_deref()
        .map(|peer| words::find(facts, peer))
    {
        None => None,
        Some(Ok(peer)) => Some(peer),
        Some(Err(sentence)) => {
            let answer = Answer::new(question.what, facts.status.round).say(sentence);
            return answer
                .act("Use the beginning of an id that `murmurate why` or the page shows.");
        }
    };
    match question.what {
        Topic::Round => round::answer(facts, question.round, peer.as_deref()),
        Topic::Contribution => contribution::answer(facts, question.round, peer.as_deref()),
        Topic::Slow => slow::answer(facts, peer.as_deref()),
    }
}

#[cfg(test)]
mod tests;
