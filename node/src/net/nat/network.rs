//! Connects the protocols for peers behind routers to the network's task. Their results become
//! evidence, reservations and addresses, and the driver learns what changed.

use crate::net::nat::path::without_peer;
use crate::net::nat::reach::Reachability;
use crate::net::nat::relays::{Needs, Reaches};
use crate::net::nat::{BehavioursEvent, circuits, is_global, is_relayed};
use crate::net::swarm::Network;
use crate::net::{NetEvent, from_libp2p};
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, autonat, dcutr, identify, identity, relay};
use murmurate_protocol::PeerId;
use tokio::time::Instant;

/// A peer's id in the form that the rest of the program shows.
fn shown(peer: &identity::PeerId) -> String {
    from_libp2p(peer).map_or_else(|| peer.to_string(), |peer| peer.to_hex())
}

impl Network {
    /// Handles an event of these protocols.
    pub(in crate::net) fn on_nat(&mut self, event: BehavioursEvent) {
        match event {
            BehavioursEvent::Client(event) => self.on_relay_client(&event),
            BehavioursEvent::Server(event) => self.on_relay_server(&event),
            BehavioursEvent::Punch(event) => self.on_punch(event),
            BehavioursEvent::Probe(event) => self.on_probed(event),
            BehavioursEvent::Prober(event) => self.on_probe_ended(&event),
            BehavioursEvent::Observed(never) => match never {},
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
            let options = DialOpts::peer_id(peer)
                .condition(PeerCondition::Always)
                .addresses(vec![circuit])
                .build();
            if self.swarm.dial(options).is_err() {
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
            let observed = &mut self.swarm.behaviour_mut().gated.inner.nat.observed;
            observed.saw(&info.observed_addr);
        } else if connection.inbound && first {
            let seen = info.observed_addr.clone();
            self.nat.evidence.dialled(seen, shown(&theirs));
        }
        if info.protocols.contains(&relay::HOP_PROTOCOL_NAME) {
            let (inbound, remote) = (connection.inbound, connection.remote.clone());
            let reaches = match info.agent_version == circuits::RELAY {
                true => Reaches::All,
                false if !inbound && is_global(&remote) => Reaches::Dialled,
                false => Reaches::Linked,
            };
            let listens = || info.listen_addrs.iter().find(|a| !is_relayed(a)).cloned();
            let address = match inbound {
                false => Some(remote),
                // A circuit of those that are linked with both needs no address of it.
                true => listens().or((reaches == Reaches::Linked).then_some(remote)),
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

    /// Whether the link to a peer goes through a relay.
    pub(super) fn is_relayed(&self, theirs: &identity::PeerId) -> bool {
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
}
