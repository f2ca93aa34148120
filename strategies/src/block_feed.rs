//! Where a trainer is in the blocks that it was told to train.

use murmurate_protocol::{Blocks, Run};

/// Goes through blocks, piece by piece: samples, windows, or whatever a trainer takes one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockFeed {
    runs: Vec<Run>,
    /// How many blocks are finished, of those behind the last one too.
    finished: u64,
    /// How many pieces of the present block are trained.
    piece: u64,
}

impl BlockFeed {
    /// Takes the blocks of a round.
    pub fn take(&mut self, blocks: &Blocks) {
        let before = self.block();
        self.runs.clone_from(&blocks.runs);
        self.finished = blocks.done.unwrap_or(0);
        if blocks.done.is_none() || before != self.block() {
            self.piece = 0;
        }
    }

    /// As [`BlockFeed::take`], of a feed that passes over what others of its island train: it stays where it
    /// is, ahead of what they have finished together.
    pub fn take_ahead(&mut self, blocks: &Blocks) {
        let (before, piece) = (self.block(), self.piece);
        self.take(blocks);
        let place = before.and_then(|block| self.place_of(block));
        if let Some(place) = place.filter(|place| blocks.done.is_some() && *place > self.finished) {
            (self.finished, self.piece) = (place, piece);
        }
    }

    /// How many blocks come before this one, if it was told.
    fn place_of(&self, block: u64) -> Option<u64> {
        let mut before = 0;
        for run in &self.runs {
            if (run.first..run.end()).contains(&block) {
                return Some(before + block - run.first);
            }
            before += run.count;
        }
        None
    }

    /// The block that is trained now; none before the first round.
    pub fn block(&self) -> Option<u64> {
        let mut left = self.finished;
        for run in &self.runs {
            if left < run.count {
                return Some(run.first + left);
            }
            left -= run.count;
        }
        let last = self.runs.last()?;
        Some(last.end() + left)
    }

    /// The block that is trained now, and how many of its pieces were taken.
    pub fn place(&self) -> Option<(u64, u64)> {
        Some((self.block()?, self.piece))
    }

    /// The next piece: its block, and its number there. `pieces` says how many a block has, at least one.
    pub fn next(&mut self, pieces: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
        let block = self.block()?;
        let piece = self.piece;
        self.piece += 1;
        if self.piece >= pieces(block) {
            self.finish();
        }
        Some((block, piece))
    }

    /// The present block is finished.
    pub fn finish(&mut self) {
        self.finished += 1;
        self.piece = 0;
    }

    /// How many blocks are finished.
    pub const fn finished(&self) -> u64 {
        self.finished
    }

    /// As bytes, for a checkpoint.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [self.finished, self.piece];
        let runs = self.runs.iter().flat_map(|run| [run.first, run.count]);
        head.into_iter()
            .chain(runs)
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// From the bytes of a checkpoint; none if they are not such bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (head, runs) = words.split_first_chunk::<2>()?;
        let (pairs, odd) = runs.as_chunks::<2>();
        let fits = |[first, count]: &[u64; 2]| first.checked_add(*count).is_some();
        if !rest.is_empty() || !odd.is_empty() || !pairs.iter().all(fits) {
            return None;
        }
        let [finished, piece] = *head;
        let run = |[first, count]: &[u64; 2]| Run::new(*first, *count);
        let runs = pairs.iter().map(run).collect();
        Some(Self {
            runs,
            finished,
            piece,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(runs: &[(u64, u64)], done: Option<u64>) -> Blocks {
        let runs = runs.iter().map(|(first, count)| Run::new(*first, *count));
        Blocks {
            runs: runs.collect(),
            done,
        }
    }

    fn taken(feed: &mut BlockFeed, pieces: usize) -> Vec<(u64, u64)> {
        (0..pieces).filter_map(|_| feed.next(|_| 2)).collect()
    }

    #[test]
    fn blocks_are_taken_in_order_and_then_those_behind_the_last() {
        let mut feed = BlockFeed::default();
        assert_eq!(feed.next(|_| 2), None);
        feed.take(&blocks(&[(7, 1), (3, 2)], None));
        let all = [(7, 0), (7, 1), (3, 0), (3, 1), (4, 0), (4, 1), (5, 0)];
        assert_eq!(taken(&mut feed, 7), all);
        assert_eq!(feed.finished(), 3);
    }

    #[test]
    fn a_block_goes_on_where_it_was_unless_its_training_was_dropped() {
        let mut feed = BlockFeed::default();
        feed.take(&blocks(&[(7, 2)], None));
        taken(&mut feed, 3);
        let mut again = feed.clone();
        feed.take(&blocks(&[(8, 1), (20, 3)], Some(0)));
        assert_eq!(taken(&mut feed, 2), [(8, 1), (20, 0)]);
        again.take(&blocks(&[(8, 1), (20, 3)], None));
        assert_eq!(taken(&mut again, 2), [(8, 0), (8, 1)]);
        // The same blocks again, of which the first is trained.
        again.take(&blocks(&[(7, 2)], Some(1)));
        assert_eq!((again.finished(), again.block()), (1, Some(8)));
    }

    #[test]
    fn one_that_is_ahead_of_its_island_stays_there_unless_its_training_was_dropped() {
        let told = blocks(&[(4, 2), (20, 3)], Some(1));
        let mut feed = BlockFeed::default();
        feed.take(&blocks(&[(3, 3), (20, 3)], None));
        taken(&mut feed, 7);
        assert_eq!((feed.finished(), feed.block()), (3, Some(20)));
        let mut again = feed.clone();
        feed.take_ahead(&told);
        assert_eq!((feed.finished(), feed.next(|_| 2)), (2, Some((20, 1))));
        again.take_ahead(&blocks(&[(4, 2), (20, 3)], None));
        assert_eq!((again.finished(), again.next(|_| 2)), (0, Some((4, 0))));
        // A block that is not told any more.
        again.take_ahead(&blocks(&[(8, 2)], Some(0)));
        assert_eq!((again.finished(), again.next(|_| 2)), (0, Some((8, 0))));
    }

    #[test]
    fn a_checkpoint_goes_on_with_the_same_piece() {
        let mut feed = BlockFeed::default();
        feed.take(&blocks(&[(7, 2), (1, 9)], None));
        taken(&mut feed, 5);
        let back = BlockFeed::from_bytes(&feed.to_bytes());
        assert_eq!(back, Some(feed.clone()));
        assert_eq!(BlockFeed::from_bytes(&feed.to_bytes()[1..]), None);
        assert_eq!(BlockFeed::from_bytes(&[0; 24]), None);
    }
}
