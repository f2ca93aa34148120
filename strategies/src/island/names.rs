//! The names of the ranks' states in a checkpoint. Those of rank 0 are the names of a peer's only trainer,
//! so the number of ranks may change between two lives.

use super::rank::RANKS_MAX;
use crate::state::{StateError, StateSink, StateSource};
use std::borrow::Cow;

/// How the names of a trainer's state begin.
const TRAINER: &str = "trainer.";

/// Where a checkpoint says how many ranks it holds.
pub(super) const RANKS: &str = "trainer.island.ranks";

/// The number of ranks whose state a checkpoint holds.
pub(super) fn read_count(bytes: &[u8]) -> Result<usize, StateError> {
    let count = <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes);
    match count {
        Ok(count @ 1..) if count <= u64::from(RANKS_MAX) => Ok(count as usize),
        _ => Err(StateError::Malformed {
            name: RANKS.to_owned(),
            reason: format!("not a number of ranks from 1 to {RANKS_MAX}"),
        }),
    }
}

fn name_of(rank: usize, name: &str) -> Cow<'_, str> {
    match (rank, name.strip_prefix(TRAINER)) {
        (1.., Some(rest)) => Cow::Owned(format!("trainer.rank.{rank}.{rest}")),
        _ => Cow::Borrowed(name),
    }
}

/// Takes the state of one rank.
pub(super) struct SinkOf<'a> {
    pub(super) rank: usize,
    pub(super) sink: &'a mut dyn StateSink,
}

impl StateSink for SinkOf<'_> {
    fn tensor(&mut self, name: &str, values: &[f32]) -> Result<(), StateError> {
        self.sink.tensor(&name_of(self.rank, name), values)
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        self.sink.bytes(&name_of(self.rank, name), bytes)
    }
}

/// Returns the state of one rank.
pub(super) struct SourceOf<'a> {
    pub(super) rank: usize,
    pub(super) source: &'a dyn StateSource,
}

impl StateSource for SourceOf<'_> {
    fn tensor(&self, name: &str, into: &mut [f32]) -> Result<(), StateError> {
        self.source.tensor(&name_of(self.rank, name), into)
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, StateError> {
        self.source.bytes(&name_of(self.rank, name))
    }

    fn contains(&self, name: &str) -> bool {
        self.source.contains(&name_of(self.rank, name))
    }
}
