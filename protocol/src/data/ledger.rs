//! The ledger: the streams of all pools; and whose contributions a round counted, as its result says it.

use crate::data::runs::Run;
use crate::data::stream::{Stream, Turn};
use crate::data::{Pool, Taken};
use crate::limits::{
    DATA_LEDGER_BYTES_MAX, DATA_MEMBERS_MAX, DATA_POOLS_MAX, DATA_QUOTA_MAX, DATA_RUNS_MAX,
    DATA_TALLY_BYTES_MAX, GRID_TALLY_MAX, ROLL_PEERS_MAX,
};
use crate::wire::check::ok;
use crate::wire::{WireError, canonical, check, decode_limited, encode_value};
use crate::{Digest, PeerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which blocks of each pool are to be trained, and who is dealt how many. All peers that apply a round
/// hold the same ledger after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub(super) pools: BTreeMap<u64, Stream>,
}

impl Ledger {
    /// Empty until a contribution has named a pool.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// Names the ledger.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    /// How many epochs of a pool are done: every block of them was in a contribution that counted.
    pub fn epochs(&self, pool: Pool) -> u64 {
        let stream = self.pools.get(&pool.name);
        stream.map_or(0, |stream| stream.reached() / u64::from(pool.blocks.max(1)))
    }

    /// The peers that train data of other pools than this one, as far as their contributions have counted.
    pub(crate) fn outside(&self, pool: Pool) -> Vec<PeerId> {
        let others = self.pools.iter().filter(|(name, _)| **name != pool.name);
        let mut peers: Vec<PeerId> = others
            .flat_map(|(_, stream)| stream.members.keys().copied())
            .collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }

    /// The blocks of a peer in the round that this ledger opens; none if it must take some by itself.
    pub(crate) fn list(&self, pool: u64, peer: PeerId, turn: Turn<'_>) -> Option<Vec<Run>> {
        self.pools.get(&pool)?.list(peer, turn)
    }

    /// Where rounds overlap: the blocks of the next round, but for one that may be half trained.
    pub(crate) fn next_list(&self, pool: u64, peer: PeerId, turn: Turn<'_>) -> Option<Vec<Run>> {
        self.pools.get(&pool)?.next_list(peer, turn)
    }

    /// Where the peer at a place among the participants begins, if nothing is dealt to it.
    pub(crate) fn own_start(&self, pool: Pool, place: (u32, u32)) -> u64 {
        match self.pools.get(&pool.name) {
            Some(stream) => stream.own_start(place, pool.blocks),
            None => Stream::default().own_start(place, pool.blocks),
        }
    }

    /// A round is over: these contributions are in its result. None where it has no result.
    pub(crate) fn settle(&mut self, counted: Option<&[(PeerId, Taken)]>, turn: Turn<'_>) {
        let void = counted.is_none();
        let counted = counted.unwrap_or_default();
        let mut by_pool: BTreeMap<u64, BTreeMap<PeerId, Taken>> = BTreeMap::new();
        for (peer, taken) in counted.iter().take(DATA_MEMBERS_MAX) {
            by_pool.entry(taken.pool).or_default().insert(*peer, *taken);
        }
        for pool in by_pool.keys() {
            self.make_room(*pool);
        }
        let none = BTreeMap::new();
        for (pool, stream) in &mut self.pools {
            let counted_here = by_pool.get(pool).unwrap_or(&none);
            stream.settle(counted_here, void, turn);
        }
    }

    /// Begins the stream of a pool, if there is room. One without peers makes room.
    fn make_room(&mut self, pool: u64) {
        if self.pools.contains_key(&pool) {
            return;
        }
        if self.pools.len() >= DATA_POOLS_MAX {
            let idle = self.pools.iter().find(|(_, s)| s.members.is_empty());
            let Some(idle) = idle.map(|(name, _)| *name) else {
                return;
            };
            self.pools.remove(&idle);
        }
        self.pools.insert(pool, Stream::default());
    }
}

/// A ledger as bytes, for states and checkpoints.
impl Stream {
    fn check(&self) -> Result<(), WireError> {
        let last = self.redo.iter().last();
        let below = last.is_none_or(|run| run.end() <= self.next);
        let whole = self.redo.is_whole() && self.redo.len() <= DATA_RUNS_MAX;
        ok(whole && below, "ledger.redo")?;
        let fits = |quota: u16| (1..=DATA_QUOTA_MAX).contains(&quota);
        let known = |run: &Run| {
            let end = run.first.checked_add(run.count);
            end.is_some_and(|end| end <= self.next)
        };
        let mut members = self.members.values();
        let fit = members.all(|entry| fits(entry.quota) && entry.held.iter().all(known));
        ok(fit, "ledger.members")?;
        let mut ahead = self.ahead.iter().flatten().flat_map(|(_, runs)| runs);
        ok(ahead.all(known), "ledger.ahead")
    }

    fn peers(&self) -> usize {
        self.members.len() + self.ahead.as_ref().map_or(0, BTreeMap::len)
    }
}

impl Ledger {
    /// As bytes; none where no contribution has named a pool yet.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            Vec::new()
        } else {
            canonical(&self.pools)
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they are too many, do not decode, or break a bound of a ledger.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let pools: BTreeMap<u64, Stream> = decode_limited::<_, DATA_LEDGER_BYTES_MAX>(bytes)?;
        let peers: usize = pools.values().map(Stream::peers).sum();
        let few = (1..=DATA_POOLS_MAX).contains(&pools.len()) && peers <= 2 * DATA_MEMBERS_MAX;
        ok(few, "ledger.pools")?;
        pools.values().try_for_each(Stream::check)?;
        Ok(Self { pools })
    }
}

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
