//! One row's sum of one shard: contributions in, their mean to the column.

use crate::limits::GRID_TALLY_MAX;
use crate::{PeerId, Roll, Taken, TallyEntry, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How far a row's sum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    /// Waits for contributions.
    Collecting,
    /// The Executor sums.
    Summing,
    /// The column has it, or there is nothing to have.
    Over,
}

/// The contributions of the peers that this one sums for.
#[derive(Debug)]
pub(super) struct Row {
    /// All whom it serves, itself included.
    pub(super) served: BTreeSet<PeerId>,
    /// Those that it still waits for.
    pub(super) awaited: BTreeSet<PeerId>,
    /// Whose contributions are here, with their weights.
    pub(super) here: BTreeMap<PeerId, f64>,
    /// The data behind these, of those that say it.
    pub(super) taken: BTreeMap<PeerId, Taken>,
    /// Whose contributions are in the sum.
    pub(super) summed: BTreeSet<PeerId>,
    pub(super) sum: Sum,
    /// Shards of this peer's own contribution that are on their way to other members.
    pub(super) sending: BTreeSet<u16>,
    /// The weight of a sum that waits until they have arrived.
    pub(super) held: Option<f64>,
    pub(super) since: Time,
    pub(super) deadline: Time,
}

impl Row {
    /// Whose contributions are in the sum, with the data behind them, by their places.
    pub(super) fn tally(&self, roll: &Roll) -> Vec<TallyEntry> {
        let known = self.summed.iter().filter_map(|peer| {
            let place = u16::try_from(roll.place_of(*peer)?).ok()?;
            let taken = *self.taken.get(peer)?;
            Some(TallyEntry { place, taken })
        });
        let mut entries: Vec<TallyEntry> = known.collect();
        entries.sort_unstable_by_key(|entry| entry.place);
        entries.truncate(GRID_TALLY_MAX);
        entries
    }

    /// Whether nothing is waited for any more.
    pub(super) fn is_complete(&self) -> bool {
        self.sum == Sum::Collecting && self.awaited.is_empty()
    }
}
