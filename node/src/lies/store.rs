//! The depot as a lying daemon shows it to others.

use super::forger::Forger;
use super::lie::LieMode;
use crate::bulk::{BulkStore, Refusal};
use crate::depot::Depot;
use bytes::Bytes;
use murmurate_net::congestion::{Limits, MaxRate, Throttle};
use murmurate_protocol::{PeerId, Round, SliceId, SliceMeta, StateId};
use std::sync::Arc;

/// Bytes per second of a slow donor: a little more than the least with which a transfer is not given up.
const SLOW_RATE: u64 = 9_000;

/// A depot that gives different bytes to different peers, or none, or slowly.
#[derive(Debug)]
pub(crate) struct LyingStore {
    depot: Arc<Depot>,
    forger: Arc<Forger>,
    me: PeerId,
    slow: Throttle,
}

impl LyingStore {
    pub(crate) fn new(depot: Arc<Depot>, forger: Arc<Forger>, me: PeerId) -> Self {
        let peer = Some(SLOW_RATE);
        let limits = Limits { peer, daemon: None };
        Self {
            depot,
            forger,
            me,
            slow: MaxRate::new(limits).throttle(),
        }
    }
}

impl BulkStore for LyingStore {
    fn get(&self, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        BulkStore::get(self.depot.as_ref(), slice)
    }

    fn for_peer(&self, to: PeerId, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        let round = slice.round.0;
        if self.forger.tells(LieMode::Silent, round) {
            return None;
        }
        let (meta, bytes) = self.depot.for_peer(to, slice)?;
        if slice.origin != self.me || !self.forger.tells(LieMode::Equivocate, round) {
            return Some((meta, bytes));
        }
        Some((meta, self.forger.variant(to, slice, &meta, &bytes)))
    }

    fn pace(&self, round: Round) -> Option<Throttle> {
        let slow = self.forger.tells(LieMode::SlowDonor, round.0);
        slow.then(|| self.slow.clone())
    }

    fn may_push(&self, from: PeerId, slice: &SliceId) -> bool {
        self.depot.may_push(from, slice)
    }

    fn accepts(&self, from: PeerId, slice: &SliceId, meta: &SliceMeta) -> Result<(), Refusal> {
        self.depot.accepts(from, slice, meta)
    }

    fn put(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) -> bool {
        BulkStore::put(self.depot.as_ref(), from, slice, meta, bytes)
    }

    fn put_fetched(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) {
        self.depot.put_fetched(from, slice, meta, bytes);
    }

    fn room(&self, bytes: usize) -> Vec<u8> {
        BulkStore::room(self.depot.as_ref(), bytes)
    }

    fn keep(&self, room: Vec<u8>) -> Bytes {
        BulkStore::keep(self.depot.as_ref(), room)
    }

    fn may_read(&self, to: PeerId, slice: Option<&SliceId>) -> bool {
        self.depot.may_read(to, slice)
    }

    fn state_manifest(&self, state: &StateId) -> Option<Bytes> {
        let silent = self.forger.tells(LieMode::Silent, state.round.0);
        self.depot.state_manifest(state).filter(|_| !silent)
    }

    fn state_chunk(&self, state: &StateId, index: u32) -> Option<Bytes> {
        let silent = self.forger.tells(LieMode::Silent, state.round.0);
        self.depot.state_chunk(state, index).filter(|_| !silent)
    }

    fn put_state_manifest(&self, state: &StateId, manifest: Bytes) -> Result<(), Refusal> {
        self.depot.put_state_manifest(state, manifest)
    }

    fn has_state_chunk(&self, state: &StateId, index: u32) -> bool {
        self.depot.has_state_chunk(state, index)
    }

    fn put_state_chunk(&self, state: &StateId, index: u32, bytes: Bytes) -> Result<(), Refusal> {
        self.depot.put_state_chunk(state, index, bytes)
    }
}
