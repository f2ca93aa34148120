//! What the Executor needs from its host: places for encoded bytes and states, and a clock.

use super::state_bytes::{StateBytes, WriteState};
use crate::slices::SliceStore;
use murmurate_protocol::{Round, StateId};
use std::io;
use std::time::Duration;

/// Pinned states that newcomers fetch, and states that this peer has fetched.
pub trait StateStore {
    /// Keeps the state that opens `round` for others to fetch, and returns its id.
    ///
    /// # Errors
    /// If it can be kept nowhere.
    fn pin(&self, round: Round, write: WriteState<'_>) -> io::Result<StateId>;
    /// Forgets the state that opens `round`.
    fn unpin(&self, round: Round);
    /// Removes and returns a fetched and verified state.
    fn take(&self, state: &StateId) -> Option<Box<dyn StateBytes>>;
}

/// Everything that the mix lane needs from its host.
pub trait Host: SliceStore + StateStore {}

impl<T: SliceStore + StateStore> Host for T {}

/// Measures how long a stretch of training takes. The daemon reads a clock, the simulator counts
/// inner steps.
pub trait Stopwatch: Send {
    /// A stretch begins.
    fn start(&mut self);
    /// The time since then, after this number of inner steps.
    fn elapsed(&mut self, steps: u64) -> Duration;
}
