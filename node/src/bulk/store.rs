//! Where slices and states live between the network and the Executor.

use bytes::Bytes;
use murmurate_protocol::{PeerId, SliceId, SliceMeta, StateId};

/// Why bytes are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The same slice is here already: its sender may count it as delivered.
    #[error("it is here already")]
    AlreadyHere,
    /// Longer than the plan allows.
    #[error("it is longer than the plan allows")]
    TooLong,
    /// Too much of this sender is waiting already.
    #[error("too much of this sender is waiting already")]
    Full,
    /// It was not asked for, or belongs to a past round.
    #[error("it is not wanted")]
    Unwanted,
}

/// The bytes that bulk transfer reads from and writes to.
///
/// Called on the network's threads: every call must return quickly and must not wait for the
/// Executor. The caller has checked lengths against its own limits, but not against the plan.
pub trait BulkStore: Send + Sync {
    /// An encoded slice with what belongs in its header, to push or to serve.
    fn get(&self, slice: &SliceId) -> Option<(SliceMeta, Bytes)>;

    /// Whether `from` may send this slice: the plan's bound on its bytes, how many of one sender
    /// may wait, whether it is wanted at all. Asked before the first byte is read.
    ///
    /// # Errors
    /// Why not.
    fn accepts(&self, from: PeerId, slice: &SliceId, meta: &SliceMeta) -> Result<(), Refusal>;

    /// Takes a slice whose `meta.bytes` bytes have arrived.
    fn put(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes);

    /// The hashes of a state's chunks, 32 bytes each
    /// ([`manifest_of`](murmurate_strategies::executor::manifest_of)).
    fn state_manifest(&self, state: &StateId) -> Option<Bytes>;

    /// One chunk of a state.
    fn state_chunk(&self, state: &StateId, index: u32) -> Option<Bytes>;

    /// Makes room for a state that is about to be fetched, and keeps its verified manifest.
    ///
    /// # Errors
    /// Why it cannot be taken.
    fn put_state_manifest(&self, state: &StateId, manifest: Bytes) -> Result<(), Refusal>;

    /// Whether a chunk is here from an earlier, interrupted fetch.
    fn has_state_chunk(&self, state: &StateId, index: u32) -> bool;

    /// Takes a verified chunk.
    ///
    /// # Errors
    /// Why it cannot be taken.
    fn put_state_chunk(&self, state: &StateId, index: u32, bytes: Bytes) -> Result<(), Refusal>;
}
