//! A machine's slices and states, in memory while the machine is up. In a daemon the depot holds
//! them.

use bytes::Bytes;
use murmurate_protocol::{Round, SliceId, StateId};
use murmurate_strategies::executor::StateStore;
use murmurate_strategies::slices::{LocalSlices, SliceStore};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A machine's encoded slices and states.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    slices: LocalSlices,
    pinned: RefCell<BTreeMap<StateId, Bytes>>,
    fetched: RefCell<BTreeMap<StateId, Bytes>>,
}

impl Stores {
    /// Number of stored slices.
    pub(crate) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// The bytes of a state that other machines may fetch.
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
