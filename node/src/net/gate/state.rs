//! What the network's task knows of the gate.

use super::membership::Membership;
use super::pending::PendingPeers;
use murmurate_protocol::PeerId;
use murmurate_trust::{Chain, Role, Roles};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The gate of this daemon.
#[derive(Debug)]
pub(in crate::net) struct Gate {
    /// Connections that have not passed yet.
    pub(in crate::net) pending: PendingPeers,
    pub(super) membership: Arc<Membership>,
    /// The certificates of the peers that have passed.
    pub(super) chains: BTreeMap<PeerId, Chain>,
    /// Peers whose news are being read.
    pub(super) telling: BTreeSet<PeerId>,
    /// Peers whose register is another, so that they are told ours.
    pub(super) to_tell: BTreeSet<PeerId>,
}

impl Gate {
    /// A gate that no one has come to.
    pub(in crate::net) fn new(membership: Arc<Membership>) -> Self {
        Self {
            pending: PendingPeers::default(),
            membership,
            chains: BTreeMap::new(),
            telling: BTreeSet::new(),
            to_tell: BTreeSet::new(),
        }
    }

    /// The role in the certificate that a peer has shown. A peer without one takes no part.
    pub(in crate::net) fn role_of(&self, peer: &PeerId) -> Role {
        let roles = self.chains.get(peer).and_then(Chain::roles);
        roles.and_then(Roles::role).unwrap_or(Role::Relay)
    }

    /// A stream of news has ended, so the next one may begin.
    pub(in crate::net) fn told(&mut self, peer: &PeerId) {
        self.telling.remove(peer);
    }
}
