//! The places of connections: a few for each peer, and what they have carried.

use crate::mux::{Session, Volume};
use libp2p::PeerId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections of one peer: one, and one that replaces it.
const PER_PEER_MAX: usize = 2;

/// Peers whose bytes are remembered while they have no connection.
const PEERS_MAX: usize = 4096;

/// The sessions of one peer, and what its closed ones carried.
#[derive(Debug, Default)]
struct Held {
    sessions: BTreeMap<u64, Option<Session>>,
    past: Volume,
}

#[derive(Debug, Default)]
struct State {
    peers: BTreeMap<PeerId, Held>,
    /// Bytes of connections that have ended.
    gone: Volume,
    next: u64,
}

/// The places of all peers.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<State>);

impl Holds {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before the lock is released.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more connection; `None` if the peer has all of its places.
    pub(super) fn take(self: &Arc<Self>, peer: PeerId) -> Option<Hold> {
        let mut state = self.state();
        if state.peers.len() >= PEERS_MAX {
            state.peers.retain(|_, held| !held.sessions.is_empty());
        }
        let id = state.next;
        state.next += 1;
        let held = state.peers.entry(peer).or_default();
        if held.sessions.len() >= PER_PEER_MAX {
            return None;
        }
        held.sessions.insert(id, None);
        let holds = Arc::clone(self);
        Some(Hold { holds, peer, id })
    }

    /// Ends the peer's sessions and forgets what they carried.
    pub(super) fn forget(&self, peer: &PeerId) {
        let mut state = self.state();
        let held = state.peers.remove(peer).unwrap_or_default();
        let sessions: Vec<Session> = held.sessions.into_values().flatten().collect();
        for session in &sessions {
            state.gone = state.gone + session.volume();
        }
        drop(state);
        // Ending a session wakes others, so it happens outside the lock.
        sessions.iter().for_each(Session::close);
    }

    /// Bytes with each peer since it was linked.
    pub(super) fn volumes(&self) -> BTreeMap<PeerId, Volume> {
        let state = self.state();
        let all = state.peers.iter();
        all.map(|(peer, held)| (*peer, held.volume())).collect()
    }

    /// Bytes with all peers since the start.
    pub(super) fn volume(&self) -> Volume {
        let state = self.state();
        let open = state.peers.values().map(Held::open);
        open.fold(state.gone, |sum, more| sum + more)
    }
}

impl Held {
    fn open(&self) -> Volume {
        let open = self.sessions.values().flatten().map(Session::volume);
        open.fold(Volume::default(), |sum, more| sum + more)
    }

    fn volume(&self) -> Volume {
        self.past + self.open()
    }
}

/// A place among the connections of a peer. Dropping it frees the place.
pub(super) struct Hold {
    holds: Arc<Holds>,
    peer: PeerId,
    id: u64,
}

impl Hold {
    pub(super) fn peer(&self) -> PeerId {
        self.peer
    }

    /// The session whose bytes count for the peer.
    pub(super) fn carries(&self, session: &Session) {
        let mut state = self.holds.state();
        let held = state.peers.get_mut(&self.peer);
        if let Some(place) = held.and_then(|held| held.sessions.get_mut(&self.id)) {
            *place = Some(session.clone());
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.holds.state();
        let Some(held) = state.peers.get_mut(&self.peer) else {
            return;
        };
        let session = held.sessions.remove(&self.id).flatten();
        let carried = session.as_ref().map(Session::volume).unwrap_or_default();
        held.past = held.past + carried;
        state.gone = state.gone + carried;
        drop(state);
        // The last handle of a session ends it, which wakes others: outside the lock.
        drop(session);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
