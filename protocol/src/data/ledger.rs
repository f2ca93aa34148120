//! The ledger: the streams of all pools.

use super::runs::Run;
use super::stream::{Stream, Turn};
use super::{Pool, Taken};
use crate::limits::{DATA_MEMBERS_MAX, DATA_POOLS_MAX};
use crate::{Digest, PeerId};
use std::collections::BTreeMap;

/// Which blocks of each pool are to be trained, and who is dealt how many. All peers that apply a round
/// hold the same ledger after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub(super) pools: BTreeMap<u64, Stream>,
}

impl Ledger {
    /// Whether no contribution has named a pool yet.
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

    /// Where rounds overlap: the blocks of a peer in the next round, but for the one that it may be in the
    /// middle of.
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
