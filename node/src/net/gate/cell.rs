//! The peers that have shown a valid certificate on a connection that is still there.

use libp2p::PeerId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connected members. The relay and the handlers of connections share it with the network's
/// task.
#[derive(Clone, Debug, Default)]
pub(in crate::net) struct Members(Arc<Mutex<BTreeSet<PeerId>>>);

impl Members {
    /// Adds a peer that has passed the gate.
    pub(in crate::net) fn add(&self, peer: PeerId) {
        self.lock().insert(peer);
    }

    /// Removes a peer whose last connection is closed, or that was revoked.
    pub(in crate::net) fn remove(&self, peer: &PeerId) {
        self.lock().remove(peer);
    }

    /// Whether a peer has passed the gate.
    pub(in crate::net) fn has(&self, peer: &PeerId) -> bool {
        self.lock().contains(peer)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PeerId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
