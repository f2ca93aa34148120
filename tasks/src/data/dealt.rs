//! The units of a data set (images, windows) that one peer trains when the peers divide the set.

use super::division::Division;
use super::{ShardError, Shards};
use crate::rng;
use murmurate_protocol::{Blocks, Digest, Participants, Pool};
use murmurate_strategies::{BlockFeed, Rank};
use std::sync::Arc;

/// The most blocks of a data set. Small blocks cost little: a peer is told runs of them.
const BLOCKS_MAX: usize = 1 << 14;

/// The fingerprint of a data set that is cut in a certain way.
pub(super) fn name_of(data: &Digest, units: usize, seed: u64) -> u64 {
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

/// This peer's part of a data set: what the participants are, or the blocks that it is told to train.
///
/// Every epoch of blocks has another random order of all units, in which block b has the places b, b + n,
/// b + 2 n and so on.
#[derive(Clone, Debug)]
pub(crate) struct Dealt {
    pool: Pool,
    seed: u64,
    division: Division,
    /// A random order of all units: the one at place p is in block `p % blocks`, so that every block is
    /// a random sample.
    order: Vec<u32>,
    /// As last told; `None` before the first round, when all units are this peer's.
    participants: Option<Participants>,
    mine: Vec<u32>,
    /// The blocks to train, once this peer is told any.
    feed: Option<BlockFeed>,
    /// The orders of the epochs that were used last, the newest one last: blocks of two epochs mix where
    /// one ends.
    epochs: Vec<(u64, Arc<Vec<u32>>)>,
    /// Which trainer of this peer it is for. The ranks of an island go through the same blocks, and each
    /// takes every `rank.of`-th unit.
    rank: Rank,
}

impl Dealt {
    /// All of the data set, until the participants are known. `seed` must be the same at all peers, which
    /// have the same data if its fingerprint `data` is the same.
    ///
    /// # Panics
    /// When there are no units.
    pub(crate) fn new(units: usize, seed: u64, data: Digest) -> Self {
        let order = rng::permutation(units, &mut rng::stream(seed, rng::SHARDS, 0));
        Self {
            pool: Pool {
                name: name_of(&data, units, seed),
                blocks: units.min(BLOCKS_MAX) as u32,
            },
            seed,
            division: Division::of(units, seed),
            mine: (0..units as u32).collect(),
            order,
            participants: None,
            feed: None,
            epochs: Vec::new(),
            rank: Rank::ALONE,
        }
    }

    /// The part of one trainer of a peer: of the peer's units, every `rank.of`-th.
    ///
    /// # Errors
    /// When there are fewer units than ranks.
    pub(crate) fn for_rank(mut self, shards: &Shards) -> Result<Self, ShardError> {
        self.rank = shards.rank;
        let (found, ranks) = (self.mine.len(), self.rank.of);
        if !self.rank.is_alone() && found < ranks as usize {
            return Err(ShardError::TooFewForRanks {
                found,
                ranks,
                needed: 1,
            });
        }
        self.keep_own();
        Ok(self)
    }

    /// Keeps this rank's part of the peer's units. With fewer units than ranks, some have the same ones.
    fn keep_own(&mut self) {
        let (count, ranks) = (self.mine.len(), self.rank.of.max(1) as usize);
        let first = self.rank.index as usize % count;
        let own = self.mine[first..].iter().step_by(ranks);
        self.mine = own.copied().collect();
    }

    /// The data set, as the peers of a run name it.
    pub(crate) const fn pool(&self) -> Pool {
        self.pool
    }

    /// Trains these blocks of it from now on.
    pub(crate) fn train_blocks(&mut self, blocks: &Blocks) {
        let feed = self.feed.get_or_insert_default();
        if self.rank.is_alone() {
            feed.take(blocks);
        } else {
            feed.take_ahead(blocks);
        }
    }

    /// How many of them are finished.
    pub(crate) fn finished(&self) -> u64 {
        self.feed.as_ref().map_or(0, BlockFeed::finished)
    }

    /// The next units of the blocks, if it was told any. Each unit is given `times` in a row.
    pub(crate) fn next(&mut self, units: usize, times: u64) -> Option<Vec<u32>> {
        (0..units).map(|_| self.next_unit(times)).collect()
    }

    fn next_unit(&mut self, times: u64) -> Option<u32> {
        self.pass_over(times);
        let (sizes, blocks) = (self.sizes(), u64::from(self.pool.blocks));
        let (block, piece) = self.feed.as_mut()?.next(|block| sizes.of(block) * times)?;
        let place = block % blocks + piece / times * blocks;
        let unit = self.epoch(block / blocks)[place as usize];
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
            units: self.order.len() as u64,
            blocks: u64::from(self.pool.blocks),
        }
    }

    /// The order of all units in an epoch.
    fn epoch(&mut self, epoch: u64) -> &[u32] {
        let at = self.epochs.iter().position(|(known, _)| *known == epoch);
        let at = at.unwrap_or_else(|| {
            let mut rng = rng::stream(self.seed, rng::EPOCHS, epoch);
            let order = Arc::new(rng::permutation(self.order.len(), &mut rng));
            if self.epochs.len() == 2 {
                self.epochs.remove(0);
            }
            self.epochs.push((epoch, order));
            self.epochs.len() - 1
        });
        &self.epochs[at].1
    }

    /// Where it is in the blocks; empty if it was told none.
    pub(crate) fn position(&self) -> Vec<u8> {
        self.feed.as_ref().map_or(Vec::new(), BlockFeed::to_bytes)
    }

    /// Goes to a position. `false` if the bytes are not one.
    pub(crate) fn seek(&mut self, position: &[u8]) -> bool {
        self.feed = None;
        if !position.is_empty() {
            self.feed = BlockFeed::from_bytes(position);
        }
        position.is_empty() || self.feed.is_some()
    }

    /// Takes this peer's part among these participants; true if they are others than before.
    pub(crate) fn deal(&mut self, participants: &Participants) -> bool {
        self.feed = None;
        if self.participants.as_ref() == Some(participants) {
            return false;
        }
        let blocks = self.division.blocks_of(participants);
        let of_block = |block: usize| self.order[block..].iter().step_by(self.division.blocks());
        self.mine = blocks.into_iter().flat_map(of_block).copied().collect();
        self.mine.sort_unstable();
        self.keep_own();
        self.participants = Some(participants.clone());
        true
    }

    /// Number of this peer's units, at least one.
    pub(crate) fn count(&self) -> usize {
        self.mine.len()
    }

    /// Tells this peer's units from those of others.
    pub(crate) fn has(&self, unit: u32) -> bool {
        self.mine.binary_search(&unit).is_ok()
    }

    /// Number of all peers' units.
    pub(crate) fn total(&self) -> usize {
        self.order.len()
    }

    /// One of this peer's units.
    ///
    /// # Panics
    /// When `place` is not below [`Dealt::count`].
    pub(crate) fn unit(&self, place: u32) -> u32 {
        self.mine[place as usize]
    }

    /// The seed of this peer's order of its units.
    pub(crate) fn order_seed(&self) -> u64 {
        let me = self.participants.as_ref().map(Participants::me);
        let seed = me.map_or(0, |me| self.division.order_seed(me));
        rng::rank_seed(seed, self.rank.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_has;
    use murmurate_protocol::{PeerId, Run};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_restart_gives_the_units_of_the_run_without_it(
            units in 100..60_000_usize,
            rounds in proptest::collection::vec(1..60_usize, 1..6),
            restart in 0..6_usize,
            times in 1..3_u64,
        ) {
            let fresh = || Dealt::new(units, 3, Digest::of(b"data"));
            let run = |restart: Option<usize>| {
                let (mut dealt, mut first, mut all) = (fresh(), 3, Vec::new());
                for (round, taken) in rounds.iter().enumerate() {
                    if restart == Some(round) {
                        let place = dealt.position();
                        dealt = fresh();
                        assert!(dealt.seek(&place));
                    }
                    let (runs, done) = (vec![Run::new(first, 90)], Some(0));
                    dealt.train_blocks(&Blocks { runs, done });
                    all.extend(dealt.next(*taken, times).unwrap());
                    first += dealt.finished();
                }
                all
            };
            prop_assert_eq!(run(None), run(Some(restart)));
        }
    }

    #[test]
    fn each_unit_is_one_peers() {
        let peer = |number: u8| PeerId::from_bytes([number; 32]);
        let mine = |me: u8| {
            let mut dealt = Dealt::new(10_000, 3, Digest::of(b"data"));
            assert_eq!(dealt.count(), 10_000);
            let all = Participants::new(peer(me), (1..=3).map(peer));
            assert!(dealt.deal(&all) && !dealt.deal(&all));
            (0..dealt.count() as u32)
                .map(move |place| dealt.unit(place))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<u32> = (1..=3).flat_map(mine).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..10_000));
    }

    #[test]
    fn the_blocks_of_an_epoch_are_all_units_once_in_another_order_each_time() {
        let mut dealt = Dealt::new(40_000, 3, Digest::of(b"data"));
        let blocks = u64::from(dealt.pool().blocks);
        assert!(blocks < 40_000);
        let mut epoch = |number: u64| {
            let runs = vec![Run::new(number * blocks, blocks)];
            dealt.train_blocks(&Blocks { runs, done: None });
            let units = dealt.next(40_000, 1).unwrap();
            assert_eq!(dealt.finished(), blocks);
            units
        };
        let (first, second) = (epoch(0), epoch(1));
        assert_ne!(first, second);
        for mut all in [first, second] {
            all.sort_unstable();
            assert!(all.into_iter().eq(0..40_000));
        }
    }

    fn of_ranks(units: usize, ranks: u32) -> Vec<Dealt> {
        let of_rank = |rank| {
            let dealt = Dealt::new(units, 3, Digest::of(b"data"));
            dealt.for_rank(&Shards::default().for_rank(rank)).unwrap()
        };
        Rank::all(ranks).map(of_rank).collect()
    }

    #[test]
    fn the_ranks_of_an_island_divide_what_its_peer_is_dealt() {
        let peer = |number: u8| PeerId::from_bytes([number; 32]);
        let among = Participants::new(peer(1), (1..=3).map(peer));
        let mut alone = Dealt::new(9_000, 3, Digest::of(b"data"));
        alone.deal(&among);
        let mut ranks = of_ranks(9_000, 4);
        let before: usize = ranks.iter().map(Dealt::count).sum();
        assert_eq!(before, 9_000, "before anyone is known, too");
        let mut seeds = std::collections::BTreeSet::new();
        let mut all = Vec::new();
        for dealt in &mut ranks {
            dealt.deal(&among);
            all.extend((0..dealt.count() as u32).map(|place| dealt.unit(place)));
            seeds.insert(dealt.order_seed());
        }
        all.sort_unstable();
        assert!(
            all.into_iter()
                .eq((0..alone.count() as u32).map(|p| alone.unit(p)))
        );
        assert_eq!(
            (seeds.len(), seeds.contains(&alone.order_seed())),
            (4, true)
        );
    }

    #[test]
    fn fewer_units_than_ranks_are_refused_in_one_line() {
        let shards = Shards::default().for_rank(Rank { index: 1, of: 4 });
        let few = Dealt::new(3, 3, Digest::of(b"data")).for_rank(&shards);
        let line = few.err().unwrap().to_string();
        assert!(line.starts_with("this peer has 3 pieces of data"), "{line}");
        assert_has(&line, "set fewer ranks");
        assert!(!line.contains('\n'), "{line}");
        // Where peers come, one may be dealt less than it has ranks: some of these then train the same.
        let mut dealt = Dealt::new(4, 3, Digest::of(b"data"))
            .for_rank(&shards)
            .unwrap();
        let peer = |number: u8| PeerId::from_bytes([number; 32]);
        dealt.deal(&Participants::new(peer(1), (1..=9).map(peer)));
        assert!(dealt.count() > 0);
    }

    #[test]
    fn the_ranks_of_an_island_divide_the_blocks_of_its_peer() {
        // One unit a block, several, and numbers of them that differ.
        for (units, times) in [(12_000, 1), (40_000, 1), (40_000, 3)] {
            let mut ranks = of_ranks(units, 4);
            let told = |first, count, done| Blocks {
                runs: vec![Run::new(first, count)],
                done,
            };
            let mut seen = Vec::new();
            let mut done = None;
            let (mut first, mut left) = (5, 400);
            // Rounds that each end within a block, and one for which the ranks are not told others.
            for round in 0..6 {
                for dealt in &mut ranks {
                    dealt.train_blocks(&told(first, left, done));
                    let taken = dealt.next(20 * times as usize, times).unwrap();
                    assert!(
                        taken
                            .chunks(times as usize)
                            .all(|of| of.iter().all(|u| *u == of[0]))
                    );
                    seen.extend(taken.into_iter().step_by(times as usize));
                }
                let finished = ranks.iter().map(Dealt::finished).min().unwrap();
                assert!(finished >= done.unwrap_or(0));
                done = Some(finished);
                if round % 2 == 0 {
                    (first, left, done) = (first + finished, left - finished, Some(0));
                }
            }
            let mut alone = Dealt::new(units, 3, Digest::of(b"data"));
            alone.train_blocks(&told(5, 400, None));
            let mut expected = alone.next(6 * 4 * 20, 1).unwrap();
            seen.sort_unstable();
            expected.sort_unstable();
            assert_eq!(seen, expected, "{units} units, each {times} times");
        }
    }

    #[test]
    fn the_order_of_the_blocks_goes_on_after_a_restart() {
        let told = |runs: &[(u64, u64)], done| Blocks {
            runs: runs
                .iter()
                .map(|(first, count)| Run::new(*first, *count))
                .collect(),
            done,
        };
        let fresh = || Dealt::new(50_000, 3, Digest::of(b"data"));
        let mut dealt = fresh();
        assert_eq!((dealt.next(1, 1), dealt.position()), (None, Vec::new()));
        dealt.train_blocks(&told(&[(9, 2), (30_000, 4)], None));
        dealt.next(8, 2);
        let mut again = fresh();
        assert!(again.seek(&dealt.position()) && !again.seek(&[1, 2, 3]));
        assert!(again.seek(&dealt.position()));
        assert_eq!(again.next(20, 2), dealt.next(20, 2));
        assert_eq!(again.finished(), dealt.finished());
        // Another data set, or another seed, is another pool.
        let other = Dealt::new(50_000, 3, Digest::of(b"other")).pool();
        assert_ne!(other.name, dealt.pool().name);
        assert_ne!(
            Dealt::new(50_000, 4, Digest::of(b"data")).pool().name,
            dealt.pool().name
        );
    }
}
