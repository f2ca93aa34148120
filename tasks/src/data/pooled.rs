//! The blocks of a data set whose peers agree on who trains which of them.

use crate::rng;
use murmurate_protocol::{Blocks, Digest, Pool};
use murmurate_strategies::{BlockFeed, Rank};
use std::sync::Arc;

/// The most blocks of a data set. Small blocks cost little: a peer is told runs of them.
const BLOCKS_MAX: usize = 1 << 14;

/// The fingerprint of a data set that is cut in a certain way.
pub(crate) fn name_of(data: &Digest, units: usize, seed: u64) -> u64 {
    let numbers = [units as u64, seed].map(u64::to_le_bytes).concat();
    let digest = Digest::of(&[&data.as_bytes()[..], &numbers].concat());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// How many units each block has: block b those at the places b, b + blocks, b + 2 blocks and so on.
#[derive(Clone, Copy)]
struct Sizes {
    units: u64,
    blocks: u64,
}

impl Sizes {
    fn of(self, block: u64) -> u64 {
        (self.units - block % self.blocks).div_ceil(self.blocks)
    }

    /// Units of all blocks before this one, those of earlier epochs too.
    fn before(self, block: u64) -> u64 {
        let (epoch, number) = (block / self.blocks, block % self.blocks);
        let (each, more) = (self.units / self.blocks, self.units % self.blocks);
        epoch * self.units + number * each + number.min(more)
    }
}

/// A data set of units in blocks, and where this peer is in those that it was told to train. Every epoch
/// has another random order of all units, in which block b has the places b, b + n, b + 2 n and so on.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pool: Pool,
    units: usize,
    seed: u64,
    feed: Option<BlockFeed>,
    /// The orders of the epochs that were used last, the newest one last: blocks of two epochs mix where
    /// one ends.
    orders: Vec<(u64, Arc<Vec<u32>>)>,
    /// Which trainer of this peer it is for. The ranks of an island go through the same blocks, and each
    /// takes every `rank.of`-th unit.
    rank: Rank,
}

impl Pooled {
    pub(super) fn new(units: usize, seed: u64, data: Digest) -> Self {
        let name = name_of(&data, units, seed);
        let blocks = units.min(BLOCKS_MAX) as u32;
        Self {
            pool: Pool { name, blocks },
            units,
            seed,
            feed: None,
            orders: Vec::new(),
            rank: Rank::ALONE,
        }
    }

    pub(super) const fn for_rank(&mut self, rank: Rank) {
        self.rank = rank;
    }

    pub(super) const fn pool(&self) -> Pool {
        self.pool
    }

    /// Trains these blocks from now on.
    pub(super) fn take(&mut self, blocks: &Blocks) {
        let feed = self.feed.get_or_insert_default();
        match self.rank.is_alone() {
            true => feed.take(blocks),
            false => feed.take_ahead(blocks),
        }
    }

    /// Trains no blocks any more.
    pub(super) fn forget(&mut self) {
        self.feed = None;
    }

    pub(super) fn finished(&self) -> u64 {
        self.feed.as_ref().map_or(0, BlockFeed::finished)
    }

    /// The next unit, each of them `times` in a row; none if no blocks were told.
    pub(super) fn next(&mut self, times: u64) -> Option<u32> {
        self.pass_over(times);
        let blocks = u64::from(self.pool.blocks);
        let sizes = self.sizes();
        let (block, piece) = self.feed.as_mut()?.next(|block| sizes.of(block) * times)?;
        let place = block % blocks + piece / times * blocks;
        let unit = self.order(block / blocks)[place as usize];
        self.pass_over(times);
        Some(unit)
    }

    /// Goes on to the next unit of this rank.
    fn pass_over(&mut self, times: u64) {
        if self.rank.is_alone() {
            return;
        }
        let (sizes, rank) = (self.sizes(), self.rank);
        let Some(feed) = &mut self.feed else { return };
        while let Some((block, piece)) = feed.place() {
            if rank.has(sizes.before(block) + piece / times) {
                return;
            }
            feed.next(|block| sizes.of(block) * times);
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            units: self.units as u64,
            blocks: u64::from(self.pool.blocks),
        }
    }

    fn order(&mut self, epoch: u64) -> &[u32] {
        let at = self.orders.iter().position(|(known, _)| *known == epoch);
        let at = at.unwrap_or_else(|| {
            let mut rng = rng::stream(self.seed, rng::EPOCHS, epoch);
            let order = Arc::new(rng::permutation(self.units, &mut rng));
            if self.orders.len() == 2 {
                self.orders.remove(0);
            }
            self.orders.push((epoch, order));
            self.orders.len() - 1
        });
        &self.orders[at].1
    }

    pub(super) fn position(&self) -> Vec<u8> {
        self.feed.as_ref().map_or(Vec::new(), BlockFeed::to_bytes)
    }

    pub(super) fn seek(&mut self, position: &[u8]) -> bool {
        self.feed = None;
        if !position.is_empty() {
            self.feed = BlockFeed::from_bytes(position);
        }
        position.is_empty() || self.feed.is_some()
    }
}
