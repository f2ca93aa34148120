//! The story of a daemon that is killed: how the others end the round in which it dies.

use super::seen::{Seen, daemons};
use crate::events::Kind;
use std::collections::BTreeSet;

/// A daemon that was killed.
#[derive(Debug)]
pub(super) struct Death {
    victim: usize,
    round: u64,
    at: f64,
    /// Unix time at which the last of the others ended the round.
    ended: f64,
    /// The others that have not ended the round yet.
    left: BTreeSet<usize>,
    /// Whether there is a result, and whether it contains the victim's training.
    decided: Option<bool>,
}

impl Death {
    /// A daemon was killed at a Unix time, in a round that `others` still have to end.
    pub(super) const fn new(victim: usize, round: u64, at: f64, others: BTreeSet<usize>) -> Self {
        Self {
            victim,
            round,
            at,
            ended: at,
            left: others,
            decided: None,
        }
    }

    /// Takes an entry. Returns a sentence when the last of the others has ended the round.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        if seen.entry.round != self.round {
            return None;
        }
        if let Some(contributors) = seen.contributors() {
            self.decided = Some(contributors.contains(&self.victim));
        }
        let ended = matches!(seen.entry.kind, Kind::RoundEnded { .. });
        if !ended || !self.left.remove(&seen.index) {
            return None;
        }
        self.ended = self.ended.max(seen.entry.time);
        if !self.left.is_empty() {
            return None;
        }
        let after = self.ended - self.at;
        let round = self.round;
        Some(match self.decided {
            Some(false) => {
                format!("The others decided round {round} without it after {after:.1} s.")
            }
            Some(true) => format!(
                "{} had sent its training before: the others decided round {round} with it after {after:.1} s.",
                daemons([&self.victim])
            ),
            None => {
                format!("The others went on without a result of round {round} after {after:.1} s.")
            }
        })
    }
}
