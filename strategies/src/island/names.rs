//! The names of the ranks' states in a checkpoint. Those of rank 0 are the names of a peer's only trainer,
//! so the number of ranks may change between two lives.

use crate::state::{StateError, StateSink, StateSource};
use std::borrow::Cow;

/// How the names of a trainer's state begin.
const TRAINER: &str = "trainer.";

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
