//! A stream whose peers agree on who reads which passage: each passage is a block.

use super::Stream;
use super::course::Leg;
use super::position::Position;
use murmurate_protocol::{Blocks, Pool};
use murmurate_strategies::{BlockFeed, Rank};

/// Opens the position of such a stream. No data has that number of passages.
const MARK: u64 = u64::MAX;

/// Goes on to the next block of this rank: the ranks of an island take the blocks in turn.
fn pass_over(told: &mut BlockFeed, rank: Rank) {
    while told.block().is_some_and(|block| !rank.has(block)) {
        told.finish();
    }
}

impl Stream {
    /// The text, if the peers can divide it in blocks.
    pub(crate) const fn pool(&self) -> Option<Pool> {
        self.pool
    }

    /// Reads these passages from now on, in their order. A passage that is no longer among them is left.
    pub(crate) fn train_blocks(&mut self, blocks: &Blocks) {
        let rank = self.rank;
        let told = self.told.get_or_insert_default();
        match rank.is_alone() {
            true => told.take(blocks),
            false => told.take_ahead(blocks),
        }
        pass_over(told, rank);
        let leg = told.block().map(|block| self.course.passage_of(block));
        let stays = leg.as_ref() == Some(&self.position.leg);
        if !stays {
            self.loaded = None;
        }
        if let (Some(leg), true) = (leg, !stays || blocks.done.is_none()) {
            self.position = Position { leg, window: 0 };
        }
        self.look_ahead();
    }

    /// How many of them are finished.
    pub(crate) fn finished_blocks(&self) -> u64 {
        self.told.as_ref().map_or(0, BlockFeed::finished)
    }

    /// All windows of the present leg are read: where it is a block, that is finished.
    pub(super) fn leg_is_read(&mut self) {
        if self.loaded.is_some()
            && let Some(told) = &mut self.told
        {
            told.finish();
            pass_over(told, self.rank);
        }
    }

    /// Of a stream that reads what it was told: the leg of the present block, or of the one after it once
    /// that is loaded.
    pub(super) fn told_leg(&mut self, next: bool) -> Option<Leg> {
        let mut told = self.told.clone()?;
        if next {
            told.finish();
            pass_over(&mut told, self.rank);
        }
        Some(self.course.passage_of(told.block()?))
    }

    /// The blocks in front of a position.
    pub(super) fn told_position(&self, position: Vec<u8>) -> Vec<u8> {
        let Some(told) = &self.told else {
            return position;
        };
        let told = told.to_bytes();
        let head = [MARK, told.len() as u64].map(u64::to_le_bytes);
        [head.concat(), told, position].concat()
    }

    /// Takes the blocks in front of a position, and gives the rest; none if they are none.
    pub(super) fn seek_told<'a>(&mut self, position: &'a [u8]) -> Option<&'a [u8]> {
        self.told = None;
        let Some(rest) = position.strip_prefix(&MARK.to_le_bytes()) else {
            return Some(position);
        };
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (told, rest) = rest.split_at_checked(length)?;
        self.told = Some(BlockFeed::from_bytes(told)?);
        Some(rest)
    }
}
