//! Connects the protocols for peers behind routers, and the missing links, to the network's task. Their results become
//! evidence, reservations, addresses and dials, directly and through other members; the driver learns what changed.

use super::connections::without_peer;
use super::gaps::Step;
use super::reach::Reachability;
use super::relays::{Needs, Reaches};
use super::{BehavioursEvent, behaviours, relay_of};
use crate::net::record::{self, REFRESH, is_global, is_relayed, to_libp2p};
use crate::net::swarm::Network;
use crate::net::{NetEvent, from_libp2p};
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, autonat, dcutr, identify, identity, relay};
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::PeerRecord;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Other members through which one dial goes, one after the other. Each answers within a round trip.
const THROUGH_MAX: usize = 16;

/// A peer's id in the form that the rest of the program shows.
fn shown(peer: &identity::PeerId) -> String {
    from_libp2p(peer).map_or_else(|| peer.to_string(), |peer| peer.to_hex())
}

impl Network {
    pub(in crate::net) fn on_nat(&mut self, event: BehavioursEvent) {
        match event {
            BehavioursEvent::Client(event) => self.on_relay_client(&event),
            BehavioursEvent::Server(event) => self.on_relay_server(&event),
            BehavioursEvent::Punch(event) => self.on_punch(event),
            BehavioursEvent::Probe(event) => self.on_probed(event),
            BehavioursEvent::Prober(event) => self.on_probe_ended(&event),
        }
        self.reconsider();
    }

    /// Re-evaluates the evidence, and tells the driver what changed.
    pub(in crate::net) fn reconsider(&mut self) {
        let now = Instant::now();
        let reach = self.nat.evidence.verdict();
        let needs = Needs {
            private: reach.state == Reachability::Private,
            missing: self.nat.gaps.need(),
        };
        for listener in self.nat.relays.need(needs, now) {
            self.swarm.remove_listener(listener);
        }
        let holding = self.nat.relays.holding();
        self.nat.report.relays = holding.filter_map(|peer| from_libp2p(&peer)).collect();
        self.nat.report.reach = reach;
        if self.nat.told.as_ref() != Some(&self.nat.report) {
            self.nat.told = Some(self.nat.report.clone());
            self.tell(NetEvent::Nat(self.nat.report.clone()));
        }
    }

    /// Sends reservations to the relays that are due, and dials the circuits that are due.
    pub(in crate::net) fn traverse(&mut self) {
        let now = Instant::now();
        self.close_gaps(now);
        for (peer, address) in self.nat.relays.due(&self.me, now) {
            let circuit = address
                .with_p2p(peer)
                .unwrap_or_else(|address| address)
                .with(Protocol::P2pCircuit);
            match self.swarm.listen_on(circuit) {
                Ok(listener) => self.nat.relays.asked(&peer, listener),
                Err(error) => {
                    tracing::debug!(%peer, %error, "cannot ask a relay");
                    self.nat.relays.failed(&peer, now);
                }
            }
        }
        for (peer, circuit) in self.nat.punches.due(now) {
            if !self.nat.is_private() {
                // There is no router on this side: a direct dial is worth as much.
                self.nat.punches.failed(&peer, now);
                continue;
            }
            if self.swarm.dial(always(peer, vec![circuit])).is_err() {
                self.nat.punches.failed(&peer, now);
            }
        }
    }

    /// Handles a connected peer's protocols, its addresses, and the address at which it saw us.
    pub(in crate::net) fn on_identified(
        &mut self,
        theirs: identity::PeerId,
        connection: ConnectionId,
        info: &identify::Info,
    ) {
        let link = from_libp2p(&theirs).and_then(|peer| self.links.get(&peer));
        let known = link.and_then(|link| Some((link, link.connections.get(connection)?)));
        let Some((link, connection)) = known else {
            return;
        };
        if connection.path.is_relayed() {
            return;
        }
        let first = link.connections.ids().next() == Some(connection.id);
        if connection.from_listening_port {
            if self.nat.observed.is_new(&info.observed_addr) {
                let gated = &mut self.swarm.behaviour_mut().gated;
                gated.may_be_at(info.observed_addr.clone());
            }
        } else if connection.inbound && first {
            let seen = info.observed_addr.clone();
            self.nat.evidence.dialled(seen, shown(&theirs));
        }
        if info.protocols.contains(&relay::HOP_PROTOCOL_NAME) {
            let (inbound, remote) = (connection.inbound, connection.remote.clone());
            let reaches = if info.agent_version == behaviours::RELAY {
                Reaches::All
            } else if !inbound && is_global(&remote) {
                Reaches::Dialled
            } else {
                Reaches::Linked
            };
            let listens = || info.listen_addrs.iter().find(|a| !is_relayed(a)).cloned();
            let address = if inbound {
                // A circuit of those that are linked with both needs no address of it.
                listens().or((reaches == Reaches::Linked).then_some(remote))
            } else {
                Some(remote)
            };
            if let Some(address) = address.map(without_peer) {
                let now = Instant::now();
                self.nat.relays.offered(theirs, address, reaches, now);
            }
        }
        self.reconsider();
    }

    /// Handles the end of a listener. Returns whether it was a reservation.
    pub(in crate::net) fn on_reservation_ended(
        &mut self,
        listener: ListenerId,
        addresses: &[Multiaddr],
        reason: &Result<(), std::io::Error>,
    ) -> bool {
        self.forget_addresses(addresses);
        let relay = self.nat.relays.closed(listener, Instant::now());
        if let Some(relay) = relay {
            tracing::debug!(%relay, ?reason, "a reservation ended");
            self.reconsider();
        }
        relay.is_some() || addresses.iter().any(is_relayed)
    }

    fn on_relay_client(&mut self, event: &relay::client::Event) {
        if let relay::client::Event::ReservationReqAccepted { relay_peer_id, .. } = event {
            self.nat.relays.reserved(relay_peer_id);
            let me = self.nat.me;
            self.nat.gaps.reserved(|peer| me < *peer, Instant::now());
        }
    }

    fn on_relay_server(&mut self, event: &relay::Event) {
        let Some(serving) = &mut self.nat.report.serving else {
            return;
        };
        match event {
            relay::Event::ReservationReqAccepted { renewed: false, .. } => {
                serving.reservations += 1;
            }
            relay::Event::ReservationClosed { .. } | relay::Event::ReservationTimedOut { .. } => {
                serving.reservations = serving.reservations.saturating_sub(1);
            }
            relay::Event::CircuitReqAccepted { .. } => serving.circuits += 1,
            relay::Event::CircuitClosed { .. } => {
                serving.circuits = serving.circuits.saturating_sub(1);
            }
            relay::Event::ReservationReqDenied { .. } | relay::Event::CircuitReqDenied { .. } => {
                serving.refused += 1;
            }
            _ => {}
        }
    }

    /// Handles the result of hole punching.
    fn on_punch(&mut self, event: dcutr::Event) {
        let theirs = event.remote_peer_id;
        let Some(peer) = from_libp2p(&theirs) else {
            return;
        };
        match event.result {
            Ok(connection) => {
                self.nat.report.punched += 1;
                self.gate.pending.punched(connection);
                self.on_punched(peer, connection);
            }
            Err(error) => {
                tracing::debug!(%peer, %error, "no hole could be punched");
                self.nat.report.punches_failed += 1;
                self.unpunched(peer, error.to_string());
            }
        }
    }

    /// Marks a connection of a link as the result of hole punching.
    pub(in crate::net) fn on_punched(&mut self, peer: PeerId, connection: ConnectionId) {
        let link = self.links.get_mut(&peer);
        if link.is_some_and(|link| link.connections.punched(connection)) {
            self.settle(peer);
        }
    }

    /// Handles a failed dial. DCUtR sends no event at the end that dialled the circuit, so a failed
    /// dial to a peer that is linked through a relay was an attempt at hole punching.
    pub(in crate::net) fn on_undialled(&mut self, theirs: &identity::PeerId) {
        let Some(peer) = from_libp2p(theirs) else {
            return;
        };
        if self.is_relayed(theirs) {
            self.unpunched(peer, "no direct dial succeeds".to_owned());
        }
    }

    /// True where the link to a peer goes through a relay.
    fn is_relayed(&self, theirs: &identity::PeerId) -> bool {
        let link = from_libp2p(theirs).and_then(|peer| self.links.get(&peer));
        let carrier = link.and_then(|link| link.connections.carrier());
        carrier.is_some_and(|carrier| carrier.path.is_relayed())
    }

    /// Records a failed attempt: the link stays relayed until the next one.
    fn unpunched(&mut self, peer: PeerId, why: String) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        link.unpunched = Some(why);
        let (theirs, spare) = (link.end.theirs, link.connections.spare());
        self.nat.punches.failed(&theirs, Instant::now());
        self.release(theirs, spare);
        self.settle(peer);
    }

    /// Handles the result of a test in which a peer dialled us.
    fn on_probed(&mut self, event: autonat::v2::client::Event) {
        let failed = event.result.err().map(|error| error.to_string());
        let address = without_peer(event.tested_addr);
        if address.is_empty() {
            // Through a relay, a peer sees only our id and no address.
            return;
        }
        if failed.is_some() && self.is_relayed(&event.server) {
            // That the two cannot reach each other is known, and says nothing of the others.
            return;
        }
        let reached = failed.is_none();
        let by = shown(&event.server);
        let counts = self.nat.evidence.tested(address.clone(), by, failed);
        if counts && reached {
            self.announce_addresses(vec![address]);
        }
    }

    /// Closes the connections of a test that a peer asked us to make.
    fn on_probe_ended(&mut self, event: &autonat::v2::server::Event) {
        tracing::debug!(client = %event.client, address = %event.tested_addr, "probed");
        let probes = self.nat.probes.iter();
        let ended = probes.filter(|(_, peer)| **peer == event.client);
        for id in ended.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.swarm.close_connection(id);
        }
    }

    /// A link to the peer of a record is wanted.
    pub(in crate::net) fn seek(&mut self, record: &PeerRecord) {
        let Some(theirs) = to_libp2p(&record.peer) else {
            return;
        };
        let may = !self.blocked.contains(&record.peer) && theirs != self.me;
        if may && !self.swarm.is_connected(&theirs) {
            let addresses = record::addresses(record).collect();
            let signed = UNIX_EPOCH + Duration::from_nanos(record.sequence);
            let age = SystemTime::now().duration_since(signed);
            // A record of the future is one of a clock that is ahead.
            let fresh = age.map_or(true, |age| age < REFRESH * 2);
            let now = Instant::now();
            self.nat.gaps.sought(theirs, addresses, fresh, now);
        }
    }

    /// Takes the steps that are due about missing links.
    fn close_gaps(&mut self, now: Instant) {
        let before = self.nat.gaps.need();
        let (me, vitals) = (self.nat.me, &self.vitals);
        let heard = |peer: &identity::PeerId| vitals.heard(&from_libp2p(peer)?);
        let steps = self.nat.gaps.due(heard, |peer| me < *peer, now);
        for (peer, step) in steps {
            let blocked = from_libp2p(&peer).is_none_or(|peer| self.blocked.contains(&peer));
            match step {
                _ if blocked => {}
                Step::Through(addresses) => self.dial_through(peer, addresses),
                Step::Directly(mut addresses) => {
                    addresses.retain(|address| !is_relayed(address));
                    self.dial_again(peer, addresses);
                }
            }
        }
        // What is missing decides whether to reserve.
        if self.nat.gaps.need() != before {
            self.reconsider();
        }
    }

    /// Dials a peer through the members here, and then through the relays of its record.
    fn dial_through(&mut self, peer: identity::PeerId, addresses: Vec<Multiaddr>) {
        let linked = self.nat.relays.linked().into_iter();
        let here = linked.filter(|(relay, _)| *relay != peer);
        let here = here.map(|(relay, address)| {
            address
                .with(Protocol::P2p(relay))
                .with(Protocol::P2pCircuit)
        });
        let me = Some(self.me);
        let told = addresses.into_iter().filter(is_relayed);
        let told = told.filter(|address| relay_of(address) != me);
        let circuits = here.take(THROUGH_MAX).chain(told.take(THROUGH_MAX));
        let stages: VecDeque<Vec<Multiaddr>> = circuits.map(|circuit| vec![circuit]).collect();
        self.dial(peer, stages);
    }

    /// Dials a peer directly whose link goes through another member.
    fn dial_again(&mut self, peer: identity::PeerId, addresses: Vec<Multiaddr>) {
        if addresses.is_empty() || !self.is_relayed(&peer) {
            return;
        }
        if let Err(error) = self.swarm.dial(always(peer, addresses)) {
            tracing::debug!(%peer, %error, "no direct dial");
        }
    }

    /// The member whose circuit arrived at this address. libp2p reports only the address of that member,
    /// as its connection has it.
    pub(in crate::net) fn relay_at(&self, local: &Multiaddr) -> Option<PeerId> {
        let parts = local.iter();
        let parts = parts.take_while(|part| *part != Protocol::P2pCircuit);
        let relay = without_peer(parts.collect());
        let has = |peer: &PeerId| {
            let link = self.links.get(peer);
            link.is_some_and(|link| {
                let mut all = link.connections.all();
                all.any(|c| !c.path.is_relayed() && without_peer(c.remote.clone()) == relay)
            })
        };
        let linked = self.links.peers().into_iter().find(has);
        linked.or_else(|| from_libp2p(&self.nat.relays.at(&relay)?))
    }
}

/// A dial although there is a connection.
fn always(peer: identity::PeerId, addresses: Vec<Multiaddr>) -> DialOpts {
    DialOpts::peer_id(peer)
        .condition(PeerCondition::Always)
        .addresses(addresses)
        .build()
}
