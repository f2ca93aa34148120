//! Whose contributions a round counted, as its result says it.

use crate::PeerId;
use crate::data::Taken;
use crate::limits::{DATA_POOLS_MAX, DATA_TALLY_BYTES_MAX, GRID_TALLY_MAX, ROLL_PEERS_MAX};
use crate::wire::{WireError, check, decode_limited, encode_value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whose contributions are in a round's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Of these peers.
    Of(Vec<(PeerId, Taken)>),
    /// There is no result: training goes on, and the next contributions hold that of this round too.
    Void,
    /// It made the branches of a split one. Each had a ledger of its own, and a new one begins.
    Merged,
}

/// One peer's contribution in a row's mean: its place in the roll, and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallyEntry {
    /// The peer's place.
    pub place: u16,
    /// The data behind its contribution.
    pub taken: Taken,
}

/// Contributions of one pool: place in the roll, blocks, and where they begin if they were not dealt.
type Places = Vec<(u16, u16, Option<u64>)>;

/// Whose contributions counted, pool by pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally(BTreeMap<u64, Places>);

impl Tally {
    /// Of these contributions. What does not fit into a note is left out, and trained again.
    pub(crate) fn of(entries: &[TallyEntry]) -> Self {
        let mut sorted: BTreeMap<u16, Taken> = BTreeMap::new();
        for entry in entries {
            sorted.entry(entry.place).or_insert(entry.taken);
        }
        let mut pools: BTreeMap<u64, Places> = BTreeMap::new();
        let mut bytes = 8;
        for (place, taken) in sorted {
            bytes += 5 + 8 * usize::from(taken.from.is_some());
            let new = !pools.contains_key(&taken.pool);
            bytes += 16 * usize::from(new);
            if bytes > DATA_TALLY_BYTES_MAX || (new && pools.len() == DATA_POOLS_MAX) {
                break;
            }
            let places = pools.entry(taken.pool).or_default();
            places.push((place, taken.blocks, taken.from));
        }
        Self(pools)
    }

    /// As bytes; none where no contribution named a pool.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if self.0.is_empty() {
            Vec::new()
        } else {
            encode_value(self)
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they do not decode, have too many pools or places, or name a place twice.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let tally: Self = decode_limited::<_, DATA_TALLY_BYTES_MAX>(bytes)?;
        let places = tally.entries().map(|entry| entry.place);
        let mut places: Vec<u16> = places.collect();
        let all = places.len();
        places.sort_unstable();
        places.dedup();
        let few = tally.0.len() <= DATA_POOLS_MAX && all <= ROLL_PEERS_MAX;
        check::ok(few && places.len() == all, "tally")?;
        Ok(tally)
    }

    /// The contributions, pool by pool.
    pub(crate) fn entries(&self) -> impl Iterator<Item = TallyEntry> + '_ {
        self.0.iter().flat_map(|(pool, places)| {
            places.iter().map(|(place, blocks, from)| TallyEntry {
                place: *place,
                taken: Taken {
                    pool: *pool,
                    blocks: *blocks,
                    from: *from,
                },
            })
        })
    }
}

/// Returns `true` if a message can have these contributions of a row: not too many, each place once, in order.
pub(crate) fn tally_fits(entries: &[TallyEntry]) -> bool {
    entries.len() <= GRID_TALLY_MAX && entries.is_sorted_by(|a, b| a.place < b.place)
}
