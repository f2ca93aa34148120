//! Where a member's slices and states lie: the host of its Executor, in memory.

use bytes::Bytes;
use murmurate_protocol::{Round, SliceId, SliceMeta, StateId};
use murmurate_strategies::executor::{
    StateBytes, StateStore, Stopwatch, WriteState, state_in_memory,
};
use murmurate_strategies::slices::SliceStore;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

#[derive(Default)]
pub struct Store {
    pub slices: RefCell<BTreeMap<SliceId, Bytes>>,
    pub headers: RefCell<BTreeMap<SliceId, SliceMeta>>,
    pub states: RefCell<BTreeMap<StateId, Bytes>>,
    /// Set while a slice is gone once it was read, as a daemon's network may drop or replace it at any time.
    pub once: Cell<bool>,
    pub read: RefCell<BTreeSet<SliceId>>,
}

impl Store {
    /// Removes and returns a state.
    pub fn taken(&self, state: &StateId) -> Option<Bytes> {
        self.states.borrow_mut().remove(state)
    }
}

impl SliceStore for Store {
    fn put(&self, slice: SliceId, bytes: Bytes) {
        self.slices.borrow_mut().insert(slice, bytes);
    }

    fn get(&self, slice: &SliceId) -> Option<Bytes> {
        if self.once.get() && !self.read.borrow_mut().insert(*slice) {
            return None;
        }
        self.slices.borrow().get(slice).cloned()
    }

    fn remove(&self, slice: &SliceId) {
        self.slices.borrow_mut().remove(slice);
        self.headers.borrow_mut().remove(slice);
    }
}

impl StateStore for Store {
    fn pin(&self, round: Round, write: WriteState<'_>) -> io::Result<StateId> {
        let (state, _, bytes) = state_in_memory(round, write)?;
        self.states.borrow_mut().insert(state, bytes);
        Ok(state)
    }

    fn unpin(&self, round: Round) {
        self.states.borrow_mut().retain(|s, _| s.round != round);
    }

    fn take(&self, state: &StateId) -> Option<Box<dyn StateBytes>> {
        let bytes = self.taken(state)?;
        Some(Box::new(bytes))
    }
}

/// Time stands still: budgets here are counts of inner steps.
pub struct Still;

impl Stopwatch for Still {
    fn start(&mut self) {}

    fn elapsed(&mut self, _: u64) -> Duration {
        Duration::ZERO
    }
}
