//! Where a machine's slices and states lie: in memory, for as long as the machine is up. The
//! daemon's lie in its depot.

use bytes::Bytes;
use murmurate_protocol::{Round, SliceId, StateId};
use murmurate_strategies::executor::StateStore;
use murmurate_strategies::slices::{LocalSlices, SliceStore};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Where a machine's encoded bytes and states lie.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    slices: LocalSlices,
    pinned: RefCell<BTreeMap<StateId, Bytes>>,
    fetched: RefCell<BTreeMap<StateId, Bytes>>,
}

impl Stores {
    /// Slices that lie here.
    pub(crate) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// The bytes of a state that others may fetch.
    pub(crate) fn pinned(&self, state: &StateId) -> Option<Bytes> {
        self.pinned.borrow().get(state).cloned()
    }

    /// Keeps a fetched state until the Executor takes it.
    pub(crate) fn keep_fetched(&self, state: StateId, bytes: Bytes) {
        self.fetched.borrow_mut().insert(state, bytes);
    }
}

impl SliceStore for Stores {
    fn put(&self, slice: SliceId, bytes: Bytes) {
        self.slices.put(slice, bytes);
    }

    fn get(&self, slice: &SliceId) -> Option<Bytes> {
        self.slices.get(slice)
    }

    fn remove(&self, slice: &SliceId) {
        self.slices.remove(slice);
    }
}

impl StateStore for Stores {
    fn pin(&self, state: StateId, _manifest: Bytes, bytes: Bytes) {
        self.pinned.borrow_mut().insert(state, bytes);
    }

    fn unpin(&self, round: Round) {
        self.pinned
            .borrow_mut()
            .retain(|state, _| state.round != round);
    }

    fn take(&self, state: &StateId) -> Option<Bytes> {
        self.fetched.borrow_mut().remove(state)
    }
}
