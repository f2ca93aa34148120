//! The two halves of a fragment's part at one peer: its row's sum of one shard, and what the columns decided, as far as
//! it is here.

use crate::exchange::agreed::ShardVersion;
use crate::limits::GRID_TALLY_MAX;
use crate::sorted::{SortedMap, SortedSet};
use crate::{Attempt, Digest, Members, PeerId, Roll, SliceId, Taken, TallyEntry, Time};

/// Progress of a row's sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sum {
    /// Waits for contributions.
    #[default]
    Collecting,
    /// The Executor sums.
    Summing,
    /// The column has it, or there is nothing to have.
    Over,
}

/// The contributions of the peers that this one sums for.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// All whom it serves, itself included.
    pub(super) served: SortedSet<PeerId>,
    /// Those that it still waits for.
    pub(super) awaited: SortedSet<PeerId>,
    /// Whose contributions are here, with their weights.
    pub(super) here: SortedMap<PeerId, f64>,
    /// The data behind these, of those that say it.
    pub(super) taken: SortedMap<PeerId, Taken>,
    /// Whose contributions are in the sum.
    pub(super) summed: SortedSet<PeerId>,
    pub(super) sum: Sum,
    /// Shards of this peer's own contribution that are on their way to other members.
    pub(super) sending: SortedSet<u16>,
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

    /// Nothing is waited for any more.
    pub(super) fn is_complete(&self) -> bool {
        self.sum == Sum::Collecting && self.awaited.is_empty()
    }
}

/// One column's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnResult {
    /// Its bundle's version. Without contributors the column found no result: its shard stays.
    pub(super) version: ShardVersion,
    /// This peer's contribution is in it; `None` where no member of its row said so.
    pub(super) counted: Option<bool>,
}

impl ColumnResult {
    /// A column that found no result.
    pub(super) fn void(owner: PeerId) -> Self {
        Self {
            version: ShardVersion {
                owner,
                attempt: Attempt::VOID,
                contributors: Members::NONE,
                digest: Digest::from_bytes([0; 32]),
            },
            counted: Some(false),
        }
    }
}

/// The results of a fragment's columns.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) columns: SortedMap<u16, ColumnResult>,
    /// Bundles that are on their way by a fetch, with what they must be.
    pub(super) fetching: SortedMap<SliceId, (u16, ShardVersion)>,
    /// Members of the row that came back in this round and hand nothing down.
    pub(super) returned: SortedSet<PeerId>,
    /// Time since which only the results of other columns are missing.
    pub(super) since: Option<Time>,
    /// Peers that wait for this peer's results.
    pub(super) askers: SortedSet<PeerId>,
    /// Questions to other peers.
    pub(super) asked: u8,
    /// The peer that it asked last.
    pub(super) helper: Option<PeerId>,
}
