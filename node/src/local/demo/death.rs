//! The story of a daemon that is killed: how the others end the round in which it dies.

use super::seen::{Seen, after};
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
    /// Whether its training is in a result that came after its death, and no later one is known yet.
    lives_on: bool,
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
            lives_on: false,
        }
    }

    /// Takes an entry. Returns a sentence when the last of the others has ended the round, and when they first
    /// decide one without the victim.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let without = seen
            .contributors()
            .is_some_and(|all| !all.contains(&self.victim));
        if without && self.lives_on && seen.entry.round > self.round {
            self.lives_on = false;
            let after = after(seen.entry.time - self.at);
            let round = seen.entry.round;
            return Some(format!(
                "The others waited for it in round {round}, and decided that without it {after}."
            ));
        }
        match seen.entry.round == self.round {
            true => self.of_its_round(seen),
            false => None,
        }
    }

    /// Takes an entry of the round in which the victim died.
    fn of_its_round(&mut self, seen: &Seen<'_>) -> Option<String> {
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
        self.lives_on = self.decided == Some(true);
        let (round, after) = (self.round, after(self.ended - self.at));
        Some(match self.decided {
            Some(false) => format!("The others decided round {round} without it {after}."),
            Some(true) => format!(
                "It had sent its training before, so the others decided round {round} with it."
            ),
            None => format!("The others went on without a result of round {round} {after}."),
        })
    }
}
