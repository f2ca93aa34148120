//! Which pairs of machines cannot reach each other, and the machines through which they have a link
//! nevertheless, as daemons have: what passes such a link takes the way through the third machine, and costs
//! it its capacity.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// How long a machine tries to reach another one before it asks a third.
pub(super) const RELAYED_AFTER: Duration = Duration::from_secs(3);

/// A pair of machines, the lower number first.
type Pair = (u32, u32);

/// The links that are missing, and what replaces them.
#[derive(Debug)]
pub(super) struct Ways {
    missing: BTreeSet<Pair>,
    relays: bool,
    via: BTreeMap<Pair, u32>,
}

fn pair(a: usize, b: usize) -> Pair {
    (a.min(b) as u32, a.max(b) as u32)
}

impl Ways {
    /// All machines can reach each other. `relays` says whether links that will be missing are replaced.
    pub(super) const fn new(relays: bool) -> Self {
        Self {
            missing: BTreeSet::new(),
            relays,
            via: BTreeMap::new(),
        }
    }

    /// From now on two machines cannot reach each other.
    pub(super) fn lose(&mut self, a: usize, b: usize) {
        self.missing.insert(pair(a, b));
    }

    /// Set for two machines that reach each other only through a third.
    pub(super) fn is_missing(&self, a: usize, b: usize) -> bool {
        !self.missing.is_empty() && self.missing.contains(&pair(a, b))
    }

    /// The machine through which the link of such a pair goes.
    pub(super) fn via(&self, a: usize, b: usize) -> Option<usize> {
        match self.via.is_empty() {
            true => None,
            false => self.via.get(&pair(a, b)).map(|via| *via as usize),
        }
    }

    /// Takes one of these machines, with which both are linked, for the link of a pair.
    pub(super) fn choose(&mut self, a: usize, b: usize, common: &[usize]) -> bool {
        // Not the same one for all, and another one where the last is gone.
        let Some(via) = common
            .get((a + b) % common.len().max(1))
            .filter(|_| self.relays)
        else {
            return false;
        };
        self.via.insert(pair(a, b), *via as u32);
        true
    }

    /// The pairs whose links go through a machine.
    pub(super) fn through(&self, machine: usize) -> Vec<(usize, usize)> {
        let through = self.via.iter().filter(|(_, via)| **via as usize == machine);
        through
            .map(|((a, b), _)| (*a as usize, *b as usize))
            .collect()
    }
}
