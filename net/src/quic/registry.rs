//! The connections of an endpoint: their number per peer, and their measurements. `admission`
//! decides which peers may connect.
//!
//! An entry lives as long as its [`Hold`], which the owner of the connection keeps. Dropping the
//! owner closes the connection.

use crate::quic::addr::bare;
use crate::quic::admission::Kind;
use crate::quic::error::Error;
use crate::quic::limits::Limits;
use crate::quic::port::Port;
use crate::quic::stats::{PathStats, Traffic};
use libp2p::PeerId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// One connection.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) peer: PeerId,
    pub(super) kind: Kind,
    pub(super) connection: quinn::Connection,
    /// The socket of the connection.
    pub(super) port: Weak<Port>,
}

/// All connections of an endpoint that have an owner.
pub(super) struct Registry {
    limits: Limits,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    counts: BTreeMap<(PeerId, Kind), usize>,
    /// Traffic of closed connections.
    gone: Traffic,
    /// Traffic of closed connections, for peers that still have another one.
    past: BTreeMap<PeerId, Traffic>,
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            held: Mutex::default(),
        })
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that one more connection of this kind to this peer is within the bounds.
    pub(super) fn room(&self, peer: PeerId, kind: Kind) -> Result<(), Error> {
        self.fits(&self.held(), peer, kind)
    }

    fn fits(&self, held: &Held, peer: PeerId, kind: Kind) -> Result<(), Error> {
        let max = self.limits.connections_max;
        if held.entries.len() >= max {
            return Err(Error::Full { max });
        }
        let max = match kind {
            Kind::Control => self.limits.control_per_peer,
            Kind::Bulk => self.limits.bulk_per_peer,
        };
        let count = held.counts.get(&(peer, kind)).copied().unwrap_or(0);
        if count >= max {
            return Err(Error::PeerFull { peer, max });
        }
        Ok(())
    }

    /// Adds a connection.
    pub(super) fn enter(self: &Arc<Self>, entry: Entry) -> Result<Hold, Error> {
        let mut held = self.held();
        self.fits(&held, entry.peer, entry.kind)?;
        *held.counts.entry((entry.peer, entry.kind)).or_default() += 1;
        let id = held.next;
        held.next += 1;
        held.entries.insert(id, entry);
        Ok(Hold {
            registry: Arc::clone(self),
            id,
        })
    }

    /// All connections, the oldest first.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.held().entries.values().cloned().collect()
    }

    /// True where there is a connection to this address.
    pub(super) fn reaches(&self, at: SocketAddr) -> bool {
        let held = self.held();
        let mut all = held.entries.values();
        all.any(|entry| bare(entry.connection.remote_address()) == bare(at))
    }

    /// UDP payload of closed connections, for peers that still have another one.
    pub(super) fn past(&self) -> BTreeMap<PeerId, Traffic> {
        self.held().past.clone()
    }

    /// UDP payload of all connections since the start, including closed ones.
    pub(super) fn traffic(&self) -> Traffic {
        let held = self.held();
        let (mut all, entries) = (held.gone, held.entries.values().cloned());
        let entries: Vec<Entry> = entries.collect();
        drop(held);
        for entry in entries {
            all.add(&PathStats::of(&entry.connection));
        }
        all
    }

    /// The oldest open connection of this kind to a peer.
    pub(super) fn oldest(&self, peer: PeerId, kind: Kind) -> Option<Entry> {
        let held = self.held();
        let mut oldest_first = held.entries.values();
        oldest_first
            .find(|entry| {
                entry.peer == peer
                    && entry.kind == kind
                    && entry.connection.close_reason().is_none()
            })
            .cloned()
    }
}

/// Keeps a connection in the registry until it is dropped.
pub(super) struct Hold {
    registry: Arc<Registry>,
    id: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.registry.held();
        let Some(entry) = held.entries.remove(&self.id) else {
            return;
        };
        let key = (entry.peer, entry.kind);
        let path = PathStats::of(&entry.connection);
        held.gone.add(&path);
        held.past.entry(entry.peer).or_default().add(&path);
        if let Some(count) = held.counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                held.counts.remove(&key);
            }
        }
        let others = [Kind::Control, Kind::Bulk].map(|kind| (entry.peer, kind));
        if !others.iter().any(|key| held.counts.contains_key(key)) {
            held.past.remove(&entry.peer);
        }
        drop(held);
        // Dropped outside the lock, because the last handle of a connection closes it.
        drop(entry);
    }
}
