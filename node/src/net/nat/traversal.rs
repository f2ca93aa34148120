//! State of the network's task about routers: evidence of reachability, relays, and hole punching.

use crate::net::NetConfig;
use crate::net::gate::Members;
use crate::net::nat::circuits;
use crate::net::nat::gaps::Gaps;
use crate::net::nat::punches::Punches;
use crate::net::nat::reach::{Evidence, Reachability};
use crate::net::nat::relays::Relays;
use crate::net::nat::report::{NatReport, Serving};
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, identity};
use std::collections::BTreeMap;
use tokio::time::Instant;

/// State of the network's task about routers.
#[derive(Debug)]
pub(in crate::net) struct Traversal {
    pub(super) evidence: Evidence,
    pub(super) relays: Relays,
    pub(super) gaps: Gaps,
    /// This daemon's id.
    pub(super) me: identity::PeerId,
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
            serving: circuits::bounds(config).map(|_| Serving::default()),
            ..NatReport::default()
        };
        Self {
            evidence: Evidence::new(config.announce.clone()),
            relays: Relays::default(),
            gaps: Gaps::default(),
            me: config.identity.public().to_peer_id(),
            punches: Punches::default(),
            members,
            probes: BTreeMap::new(),
            report,
            told: None,
        }
    }

    /// When the next action is due.
    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        let all = [
            self.relays.next_at(),
            self.punches.next_at(),
            self.gaps.next_at(),
        ];
        all.into_iter().flatten().min()
    }

    /// Marks a connection as a test of whether the peer can be dialled.
    pub(in crate::net) fn probing(&mut self, id: ConnectionId, peer: identity::PeerId) {
        self.probes.insert(id, peer);
    }

    /// Removes a closed connection. Returns whether it was only a test.
    pub(in crate::net) fn probed(&mut self, id: ConnectionId) -> bool {
        self.probes.remove(&id).is_some()
    }

    /// Records that a link goes through a circuit that this end dialled.
    pub(in crate::net) fn relayed(&mut self, peer: identity::PeerId, circuit: Multiaddr) {
        self.punches.relayed(peer, circuit);
    }

    /// Records that a link is direct, so it needs no hole punching and no other member. Returns whether
    /// one of these was under way.
    pub(in crate::net) fn direct(&mut self, peer: &identity::PeerId) -> bool {
        self.punches.over(peer);
        self.gaps.over(peer)
    }

    /// Records that a link goes through a relay.
    pub(in crate::net) fn indirect(&mut self, peer: &identity::PeerId) {
        self.relays.unlinked(peer);
        let first = self.me < *peer;
        self.gaps.relayed(peer, first, Instant::now());
    }

    /// Forgets a peer whose last connection is closed. `wanted` says whether that was not meant.
    pub(in crate::net) fn gone(&mut self, peer: &identity::PeerId, wanted: bool) {
        self.punches.over(peer);
        self.relays.gone(peer);
        let now = Instant::now();
        match wanted {
            true if self.gaps.broken(peer, now) => {}
            true => self.gaps.lost(*peer, now),
            false => {
                self.gaps.over(peer);
            }
        }
    }

    /// Whether a circuit to this daemon is for everyone, and not only for the members that it cannot reach.
    pub(in crate::net) fn is_private(&self) -> bool {
        self.report.reach.state == Reachability::Private
    }

    /// Whether this daemon tells those who reserve here at which addresses it can be dialled.
    pub(in crate::net) fn serves(&self) -> bool {
        self.report.serving.is_some()
    }
}
