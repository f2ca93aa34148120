//! The depot holds encoded slices and states between the Executor's lanes and the network. Both use
//! it from their own threads, and no thread holds its lock during computation or IO.

mod incoming;
mod rooms;
mod slices;
mod states;

use crate::bulk::{BulkStore, Refusal};
use bytes::Bytes;
pub(crate) use incoming::Transfer;
use murmurate_protocol::{GroupTag, PeerId, Plan, Round, SliceId, SliceMeta, SortedSet, StateId};
use murmurate_strategies::executor::{StateBytes, StateStore, WriteState};
use murmurate_strategies::slices::{SliceStore, is_loose};
use rooms::Rooms;
use slices::Slices;
use states::{Pinned, States};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slices and states of one daemon.
#[derive(Debug)]
pub(crate) struct Depot {
    plan: Plan,
    /// Buffers of released slices.
    rooms: Rooms,
    slices: Mutex<Slices>,
    states: Mutex<States>,
    /// Peers of this run that this peer has accepted.
    greeted: Mutex<SortedSet<PeerId>>,
}

impl Depot {
    /// A depot with the bounds of `plan` and with states in files of `dir`, a daemon's directory. A state of which an
    /// earlier life of the daemon fetched a part is completed: the chunks that are there are read
    /// and checked now.
    pub(crate) fn in_dir(plan: Plan, dir: &Path) -> Self {
        let states = States::in_dir(dir, plan.state_bytes_max());
        Self {
            plan,
            rooms: Rooms::default(),
            slices: Mutex::default(),
            states: Mutex::new(states),
            greeted: Mutex::default(),
        }
    }

    /// Sets the current round and the group in it. Slices of rounds too far from it are refused, and a
    /// state of an earlier round is of no more use.
    pub(crate) fn set_round(&self, round: Round, group: Option<GroupTag>) {
        self.slices().set_round(round, group);
        self.states().begun(round);
    }

    /// The state that is being fetched.
    pub(crate) fn transfer(&self) -> Option<Transfer> {
        self.states().transfer()
    }

    /// Lets a peer that was accepted read the shared slices and states, or no longer.
    pub(crate) fn set_greeted(&self, peer: PeerId, greeted: bool) {
        if greeted {
            self.greeted().insert(peer);
        } else {
            self.greeted().remove(&peer);
        }
    }

    /// Sets the header of one of this peer's slices. Returns it with the true size, or `None` if
    /// the slice is not here.
    pub(crate) fn describe(&self, slice: &SliceId, meta: SliceMeta) -> Option<SliceMeta> {
        self.slices().describe(slice, meta)
    }

    fn slices(&self) -> MutexGuard<'_, Slices> {
        // Each change is a single insert or remove, so a panic elsewhere cannot leave the maps
        // inconsistent.
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn greeted(&self) -> MutexGuard<'_, SortedSet<PeerId>> {
        self.greeted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SliceStore for Depot {
    fn put(&self, slice: SliceId, bytes: Bytes) {
        self.slices().put_own(slice, bytes);
    }

    fn get(&self, slice: &SliceId) -> Option<Bytes> {
        self.slices().bytes_of(slice)
    }

    fn remove(&self, slice: &SliceId) {
        self.slices().remove(slice);
    }

    fn room(&self, bytes: usize) -> Vec<u8> {
        let mut room = self.rooms.take(bytes);
        room.reserve_exact(bytes);
        room
    }

    fn keep(&self, room: Vec<u8>) -> Bytes {
        if !is_loose(&room) {
            return self.rooms.keep(room);
        }
        let mut fitting = SliceStore::room(self, room.len());
        fitting.extend_from_slice(&room);
        self.rooms.give_back(room);
        self.rooms.keep(fitting)
    }
}

impl StateStore for Depot {
    fn pin(&self, round: Round, write: WriteState<'_>) -> io::Result<StateId> {
        // Written without the lock: it takes as long as a copy of the model.
        let dir = self.states().dir();
        let pinned = Pinned::write(round, dir.as_deref(), write)?;
        Ok(self.states().pin(pinned))
    }

    fn unpin(&self, round: Round) {
        self.states().unpin(round);
    }

    fn take(&self, state: &StateId) -> Option<Box<dyn StateBytes>> {
        self.states().take(state)
    }
}

impl BulkStore for Depot {
    fn get(&self, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        self.slices().get(slice)
    }

    fn may_push(&self, from: PeerId, slice: &SliceId) -> bool {
        Slices::may_push(&self.plan, from, slice)
    }

    fn accepts(&self, from: PeerId, slice: &SliceId, meta: &SliceMeta) -> Result<(), Refusal> {
        self.slices().accepts(&self.plan, from, slice, meta)
    }

    fn put(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) -> bool {
        self.slices().put_from(from, slice, meta, bytes)
    }

    fn put_fetched(&self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) {
        self.slices().put_fetched(from, slice, meta, bytes);
    }

    fn room(&self, bytes: usize) -> Vec<u8> {
        self.rooms.take(bytes)
    }

    fn keep(&self, room: Vec<u8>) -> Bytes {
        self.rooms.keep(room)
    }

    fn may_read(&self, to: PeerId, slice: Option<&SliceId>) -> bool {
        // Contributions and partial sums are pushed to those that they are for.
        let shared = slice.is_none_or(|slice| slice.part.is_decided());
        shared && self.greeted().contains(&to)
    }

    fn state_manifest(&self, state: &StateId) -> Option<Bytes> {
        self.states().manifest(state)
    }

    fn state_chunk(&self, state: &StateId, index: u32) -> Option<Bytes> {
        // Read without the lock.
        let pinned = self.states().pinned(state)?;
        pinned.chunk(index)
    }

    fn put_state_manifest(&self, state: &StateId, manifest: Bytes) -> Result<(), Refusal> {
        if state.bytes > self.plan.state_bytes_max() {
            return Err(Refusal::TooLong);
        }
        self.states().begin(state, &manifest);
        Ok(())
    }

    fn has_state_chunk(&self, state: &StateId, index: u32) -> bool {
        self.states().has_chunk(state, index)
    }

    fn put_state_chunk(&self, state: &StateId, index: u32, bytes: Bytes) -> Result<(), Refusal> {
        self.states().put_chunk(state, index, &bytes)
    }
}

#[cfg(test)]
mod tests;
