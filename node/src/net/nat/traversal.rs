//! State of the network's task about routers: evidence of reachability, relays, and hole punching.

use crate::net::gate::Members;
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

/// State of the network's task about routers.
#[derive(Debug)]
pub(in crate::net) struct Traversal {
    pub(super) evidence: Evidence,
    pub(super) relays: Relays,
    pub(super) punches: Punches,
    /// The members that are connected.
    pub(in crate::net) members: Members,
    /// Connections that only test whether a peer can be dialled. No link uses them.
    pub(super) probes: BTreeMap<ConnectionId, identity::PeerId>,
    pub(super) report: NatReport,
    pub(super) told: Option<NatReport>,
}

impl Traversal {
    /// Starts with the configuration's announced addresses.
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

    /// When the next action is due.
    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        let both = [self.relays.next_at(), self.punches.next_at()];
        both.into_iter().flatten().min()
    }

    /// Marks a connection as a test of whether the peer can be dialled.
    pub(in crate::net) fn probing(&mut self, id: ConnectionId, peer: identity::PeerId) {
        self.probes.insert(id, peer);
    }

    /// Removes a closed connection. Returns whether it was only a test.
    pub(in crate::net) fn probed(&mut self, id: ConnectionId) -> bool {
        self.probes.remove(&id).is_some()
    }

    /// The relay whose circuit arrived at this address. libp2p reports only the relay's address.
    pub(in crate::net) fn relay_at(&self, local: &Multiaddr) -> Option<PeerId> {
        let parts = local
            .iter()
            .take_while(|part| *part != Protocol::P2pCircuit);
        let relay = self.relays.at(&without_peer(parts.collect()))?;
        from_libp2p(&relay)
    }

    /// Records that a link goes through a circuit that this end dialled.
    pub(in crate::net) fn relayed(&mut self, peer: identity::PeerId, circuit: Multiaddr) {
        self.punches.relayed(peer, circuit);
    }

    /// Records that a link is direct, so it needs no hole punching.
    pub(in crate::net) fn direct(&mut self, peer: &identity::PeerId) {
        self.punches.over(peer);
    }

    /// Forgets a peer whose last connection is closed.
    pub(in crate::net) fn gone(&mut self, peer: &identity::PeerId) {
        self.punches.over(peer);
        self.relays.gone(peer);
    }
}
