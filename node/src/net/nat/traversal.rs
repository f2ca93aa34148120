//! What the network's task knows of routers: evidence of reachability, relays, and holes to punch.

use crate::net::nat::circuits::Members;
use crate::net::nat::path::without_peer;
use crate::net::nat::punches::Punches;
use crate::net::nat::reach::Evidence;
use crate::net::nat::relays::Relays;
use crate::net::nat::report::{NatReport, Serving};
use crate::net::{NetConfig, from_libp2p};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, identity};
use murmurate_protocol::PeerId;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// What the network's task knows of routers.
#[derive(Debug)]
pub(in crate::net) struct Traversal {
    pub(super) evidence: Evidence,
    pub(super) relays: Relays,
    pub(super) punches: Punches,
    pub(super) members: Members,
    /// Connections that only test whether a peer can be dialled: no link uses them.
    pub(super) probes: BTreeMap<ConnectionId, identity::PeerId>,
    pub(super) report: NatReport,
    pub(super) told: Option<NatReport>,
}

impl Traversal {
    /// Nothing yet.
    pub(in crate::net) fn new(config: &NetConfig, members: Members) -> Self {
        let report = NatReport {
            serving: config.relay.then(Serving::default),
            ..NatReport::default()
        };
        Self {
            evidence: Evidence::new(config.announce.clone()),
            relays: Relays::default(),
            punches: Punches::default(),
            members,
            probes: BTreeMap::new(),
            report,
            told: None,
        }
    }

    /// When something is due next.
    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        let both = [self.relays.next_at(), self.punches.next_at()];
        both.into_iter().flatten().min()
    }

    /// This connection only tests whether the peer can be dialled.
    pub(in crate::net) fn probing(&mut self, id: ConnectionId, peer: identity::PeerId) {
        self.probes.insert(id, peer);
    }

    /// A connection is gone; whether it was only a test.
    pub(in crate::net) fn probed(&mut self, id: ConnectionId) -> bool {
        self.probes.remove(&id).is_some()
    }

    /// Whose circuit arrived at this address: libp2p names the relay's address only.
    pub(in crate::net) fn relay_at(&self, local: &Multiaddr) -> Option<PeerId> {
        let parts = local
            .iter()
            .take_while(|part| *part != Protocol::P2pCircuit);
        let relay = self.relays.at(&without_peer(parts.collect()))?;
        from_libp2p(&relay)
    }

    /// A link goes through a circuit that this end dialled.
    pub(in crate::net) fn relayed(&mut self, peer: identity::PeerId, circuit: Multiaddr) {
        self.punches.relayed(peer, circuit);
    }

    /// A link needs no hole any more.
    pub(in crate::net) fn direct(&mut self, peer: &identity::PeerId) {
        self.punches.over(peer);
    }

    /// A peer is gone.
    pub(in crate::net) fn gone(&mut self, peer: &identity::PeerId) {
        self.punches.over(peer);
        self.relays.gone(peer);
        self.members.remove(peer);
    }
}
