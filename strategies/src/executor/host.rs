//! What the Executor needs of whoever runs it: places for encoded bytes and states, and a clock.

use crate::slices::SliceStore;
use bytes::Bytes;
use murmurate_protocol::{Digest, Round, StateId};
use std::time::Duration;

/// Pinned states for newcomers, and fetched ones on their way in.
pub trait StateStore {
    /// Keeps a state for others to fetch: its bytes, and its manifest (the hashes of its chunks,
    /// back to back), whose hash is `state.root`.
    fn pin(&self, state: StateId, manifest: Bytes, bytes: Bytes);
    /// Forgets the state that opens `round`.
    fn unpin(&self, round: Round);
    /// Takes a fetched and verified state out.
    fn take(&self, state: &StateId) -> Option<Bytes>;
}

/// All that the mix lane needs of its host.
pub trait Host: SliceStore + StateStore {}

impl<T: SliceStore + StateStore> Host for T {}

/// Tells how long a stretch of training has taken: the daemon reads a clock, the simulator counts
/// inner steps.
pub trait Stopwatch: Send {
    /// A stretch begins.
    fn start(&mut self);
    /// Time since then, after so many inner steps.
    fn elapsed(&mut self, steps: u64) -> Duration;
}

/// Hashes of a state's chunks, back to back: what a newcomer checks every chunk against.
pub fn manifest_of(bytes: &[u8]) -> Vec<u8> {
    let chunks = bytes.chunks(murmurate_protocol::limits::STATE_CHUNK_BYTES);
    chunks
        .flat_map(|chunk| *Digest::of(chunk).as_bytes())
        .collect()
}
