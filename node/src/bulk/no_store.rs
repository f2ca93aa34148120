//! The store of a network without slices and states.

use crate::bulk::{BulkStore, Refusal};
use bytes::Bytes;
use murmurate_protocol::{PeerId, SliceId, SliceMeta, StateId};

/// Has nothing, and takes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoStore;

impl BulkStore for NoStore {
    fn get(&self, _: &SliceId) -> Option<(SliceMeta, Bytes)> {
        None
    }

    fn for_peer(&self, _: PeerId, _: &SliceId) -> Option<(SliceMeta, Bytes)> {
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
