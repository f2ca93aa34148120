//! The blocks of a data set whose peers agree on who trains which of them.

use crate::rng;
use murmurate_protocol::{Blocks, Digest, Pool};
use murmurate_strategies::BlockFeed;
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
        }
    }

    pub(super) const fn pool(&self) -> Pool {
        self.pool
    }

    /// Trains these blocks from now on.
    pub(super) fn take(&mut self, blocks: &Blocks) {
        self.feed.get_or_insert_default().take(blocks);
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
        let (units, blocks) = (self.units as u64, u64::from(self.pool.blocks));
        let first = |block: u64| block % blocks;
        let pieces = |block: u64| (units - first(block)).div_ceil(blocks) * times;
        let (block, piece) = self.feed.as_mut()?.next(pieces)?;
        let place = first(block) + piece / times * blocks;
        Some(self.order(block / blocks)[place as usize])
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
