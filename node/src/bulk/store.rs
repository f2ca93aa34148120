//! The store of slices and states between the network and the Executor.

use bytes::Bytes;
use murmurate_net::congestion::Throttle;
use murmurate_protocol::{PeerId, Round, SliceId, SliceMeta, StateId};

/// Why the store refuses bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The store already has this slice. The sender counts it as delivered.
    #[error("the store already has it")]
    AlreadyHere,
    /// Longer than the plan allows.
    #[error("it is longer than the plan allows")]
    TooLong,
    /// Too many slices or bytes of this sender are stored.
    #[error("too many slices or bytes of this sender are stored")]
    Full,
    #[error("the store is full")]
    NoRoom,
    /// The slice was not requested, or belongs to a past round.
    #[error("it was not requested, or belongs to a past round")]
    Unwanted,
}

/// Storage that bulk transfer reads from and writes to.
///
/// The network's threads call these methods: each must return quickly and must not wait for the
/// Executor. The caller has checked lengths against its own limits, but not against the plan.
pub trait BulkStore: Send + Sync {
    fn get(&self, slice: &SliceId) -> Option<(SliceMeta, Bytes)>;

    /// What the peer `to` is pushed or served of a slice.
    fn for_peer(&self, _to: PeerId, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        self.get(slice)
    }

    /// Limits what others fetch of this round, in place of the limit of the daemon: a liar may be slow.
    fn pace(&self, _round: Round) -> Option<Throttle> {
        None
    }

    /// True where `from` may push this slice by itself. Any peer that has it may serve it.
    fn may_push(&self, from: PeerId, slice: &SliceId) -> bool;

    /// Decides before the first byte is read whether `from` may send this slice: whether it is
    /// wanted, within the plan's size, and within the number of slices that one sender may store.
    ///
    /// # Errors
    /// Why the slice is refused.
    fn accepts(&self, from: PeerId, slice: &SliceId, meta: &SliceMeta) -> Result<(), Refusal>;

    /// Stores a pushed slice whose `meta.bytes` bytes have all arrived. Returns false if a slice of this
    /// name has arrived meanwhile, which stays.
    fn put(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) -> bool;

    /// Stores a slice that was fetched, in place of one of the same name.
    fn put_fetched(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes);

    /// An empty buffer for a body of this many bytes, with their capacity or with none. Stores may
    /// recycle those of released slices.
    fn room(&self, _bytes: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Makes a body that was read into a [room](BulkStore::room) the bytes of a slice.
    fn keep(&self, room: Vec<u8>) -> Bytes {
        Bytes::from(room)
    }

    /// True where `to` may fetch a slice, or a state if none is named. A peer may push any slice to any peer.
    fn may_read(&self, to: PeerId, slice: Option<&SliceId>) -> bool;

    /// The hashes of a state's chunks, 32 bytes each
    /// ([`ManifestWriter`](murmurate_strategies::executor::ManifestWriter)).
    fn state_manifest(&self, state: &StateId) -> Option<Bytes>;

    /// One chunk of a state; `None` if it is not here.
    fn state_chunk(&self, state: &StateId, index: u32) -> Option<Bytes>;

    /// Prepares for a fetch of a state and stores its verified manifest.
    ///
    /// # Errors
    /// Why the state is refused.
    fn put_state_manifest(&self, state: &StateId, manifest: Bytes) -> Result<(), Refusal>;

    /// True for a chunk that an earlier, interrupted fetch stored.
    fn has_state_chunk(&self, state: &StateId, index: u32) -> bool;

    /// Stores a verified chunk.
    ///
    /// # Errors
    /// Why the chunk is refused.
    fn put_state_chunk(&self, state: &StateId, index: u32, bytes: Bytes) -> Result<(), Refusal>;
}

/// The store of a network without slices and states: it has nothing, and takes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoStore;

impl BulkStore for NoStore {
    fn get(&self, _: &SliceId) -> Option<(SliceMeta, Bytes)> {
        None
    }

    fn may_push(&self, _: PeerId, _: &SliceId) -> bool {
        false
    }

    fn put_fetched(&self, _: PeerId, _: SliceId, _: SliceMeta, _: Bytes) {}

    fn may_read(&self, _: PeerId, _: Option<&SliceId>) -> bool {
        false
    }

    fn accepts(&self, _: PeerId, _: &SliceId, _: &SliceMeta) -> Result<(), Refusal> {
        Err(Refusal::Unwanted)
    }

    fn put(&self, _: PeerId, _: SliceId, _: SliceMeta, _: Bytes) -> bool {
        false
    }

    fn state_manifest(&self, _: &StateId) -> Option<Bytes> {
        None
    }

    fn state_chunk(&self, _: &StateId, _: u32) -> Option<Bytes> {
        None
    }

    fn put_state_manifest(&self, _: &StateId, _: Bytes) -> Result<(), Refusal> {
        Err(Refusal::Unwanted)
    }

    fn has_state_chunk(&self, _: &StateId, _: u32) -> bool {
        false
    }

    fn put_state_chunk(&self, _: &StateId, _: u32, _: Bytes) -> Result<(), Refusal> {
        Err(Refusal::Unwanted)
    }
}
