//! The story of a split: how each side goes on.

use super::seen::{Seen, after, daemons};
use std::collections::BTreeSet;

/// A swarm that is split.
#[derive(Debug)]
pub(super) struct Rift {
    /// Unix time at which the first daemon noticed.
    at: f64,
    /// The sides that have not gone on yet.
    left: Vec<BTreeSet<usize>>,
    round: u64,
}

impl Rift {
    /// The sides lost each other at a Unix time, in this round.
    pub(super) fn new(sides: &[Vec<usize>], round: u64, at: f64) -> Self {
        let left = sides.iter().map(|side| side.iter().copied().collect());
        Self {
            at,
            left: left.collect(),
            round,
        }
    }

    /// Takes an entry. Returns a sentence when a side decides its first round alone.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let contributors = seen.contributors().filter(|all| !all.is_empty())?;
        if seen.entry.round < self.round || seen.entry.time < self.at {
            return None;
        }
        let alone = |side: &BTreeSet<usize>| contributors.is_subset(side);
        let place = self.left.iter().position(alone)?;
        let side = self.left.remove(place);
        let (round, after) = (seen.entry.round, after(seen.entry.time - self.at));
        Some(format!(
            "{} go on among themselves {after}, from round {round} on.",
            daemons(&side)
        ))
    }
}
