//! A stream whose peers agree on who reads which passage: each passage is a block.

use super::Stream;
use super::course::Leg;
use super::position::Position;
use murmurate_protocol::{Blocks, Pool};
use murmurate_strategies::BlockFeed;

/// Opens the position of such a stream. No data has that number of passages.
const MARK: u64 = u64::MAX;

impl Stream {
    /// The text, if the peers can divide it in blocks.
    pub(crate) const fn pool(&self) -> Option<Pool> {
        self.pool
    }

    /// Reads these passages from now on, in their order. A passage that is no longer among them is left.
    pub(crate) fn train_blocks(&mut self, blocks: &Blocks) {
        let told = self.told.get_or_insert_default();
        told.take(blocks);
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
        }
    }

    /// Of a stream that reads what it was told: the leg of the present block, or of the one after it once
    /// that is loaded.
    pub(super) fn told_leg(&mut self, next: bool) -> Option<Leg> {
        let mut told = self.told.clone()?;
        if next {
            told.finish();
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
