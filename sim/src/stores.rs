//! A machine's slices and states, in memory while the machine is up. In a daemon the depot holds
//! them.

use bytes::Bytes;
use murmurate_protocol::{Round, SliceId, StateId};
use murmurate_strategies::executor::{StateBytes, StateStore, WriteState, state_in_memory};
use murmurate_strategies::slices::{LocalSlices, SliceStore};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

/// A machine's encoded slices and states.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    slices: LocalSlices,
    pinned: RefCell<BTreeMap<StateId, Bytes>>,
    fetched: RefCell<BTreeMap<StateId, Bytes>>,
}

impl Stores {
    pub(crate) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// The bytes of a state that other machines may fetch.
    pub(crate) fn pinned(&self, state: &StateId) -> Option<Bytes> {
        self.pinned.borrow().get(state).cloned()
    }

    /// Keeps a state for others to fetch.
    pub(crate) fn keep_pinned(&self, state: StateId, bytes: Bytes) {
        self.pinned.borrow_mut().insert(state, bytes);
    }

    pub(crate) fn take_fetched(&self, state: &StateId) -> Option<Bytes> {
        self.fetched.borrow_mut().remove(state)
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
    fn pin(&self, round: Round, write: WriteState<'_>) -> io::Result<StateId> {
        let (state, _, bytes) = state_in_memory(round, write)?;
        self.keep_pinned(state, bytes);
        Ok(state)
    }

    fn unpin(&self, round: Round) {
        self.pinned
            .borrow_mut()
            .retain(|state, _| state.round != round);
    }

    fn take(&self, state: &StateId) -> Option<Box<dyn StateBytes>> {
        let bytes = self.take_fetched(state)?;
        Some(Box::new(bytes))
    }
}
