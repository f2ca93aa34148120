//! Chooses which peers to dial (from records, from addresses to join through, and from discovery), and which addresses
//! to tell other peers: the listening addresses, or those that the configuration announces.

use super::NetEvent;
use super::behaviour::HANDSHAKES_MAX;
use super::bootstrap::{name_of, resolve};
use super::nat::relay_of;
use super::record::{self, address_with_peer, from_libp2p, is_quic, is_relayed, to_libp2p};
use super::streams::Internal;
use super::swarm::Network;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, DialError};
use libp2p::{Multiaddr, identify, identity, mdns};
use murmurate_protocol::Locality;
use murmurate_protocol::limits::ACTIVE_LINKS_MAX;
use murmurate_protocol::wire::PeerRecord;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long discovery does not dial a peer that the driver disconnected.
pub(super) const AVOID: Duration = Duration::from_secs(60);

/// How long the end with the higher id waits for the other one to dial: less than the two seconds after which the
/// peer asks for the dial again.
pub(super) const TURN: Duration = Duration::from_secs(1);

/// Outbound handshakes above which no discovered peer is dialled: half of all, so that invented peers leave the
/// others to the peers of records and to addresses to join.
const FOUND_DIALS_MAX: u32 = HANDSHAKES_MAX / 2;

/// Addresses on the local network that are remembered: many daemons with several each.
const MDNS_ADDRESSES_MAX: usize = 1024;

/// Number of avoided peers. Beyond it the oldest is forgotten.
const AVOIDED_MAX: usize = 256;

/// Addresses of a circuit for a missing link that this peer's record names: those who need them are linked
/// with the relay, so they need none of its addresses.
const CIRCUITS_TOLD: usize = 2;

impl Network {
    /// Dials the peer of a record after a while, unless it is linked by then, if the peer's own dial comes first: of
    /// two that learn of each other at the same time, the one with the lower id dials.
    pub(super) fn dial_in_turn(&mut self, record: PeerRecord) {
        if from_libp2p(&self.me).is_none_or(|me| me < record.peer) {
            return self.dial_record(&record);
        }
        let network = self.opener.network.clone();
        // As many at a time as the peer dials, which its number of links bounds.
        self.tasks.spawn(async move {
            tokio::time::sleep(TURN).await;
            // If the network has ended, the link is no longer needed.
            let _ = network.send(Internal::Turn(record)).await;
        });
    }

    pub(super) fn dial_record(&mut self, record: &PeerRecord) {
        let Some(peer) = to_libp2p(&record.peer) else {
            return;
        };
        self.seek(record);
        self.dial_all(peer, record::addresses(record).collect());
    }

    /// Dials over QUIC first. TCP is tried after QUIC has failed, and relays after TCP has failed.
    fn dial_all(&mut self, peer: identity::PeerId, mut addresses: Vec<Multiaddr>) {
        // This daemon cannot be its own relay.
        addresses.retain(|address| relay_of(address) != Some(self.me));
        self.dial(peer, record::stages(addresses));
    }

    /// Dials a peer at these addresses, stage by stage.
    pub(super) fn dial(&mut self, peer: identity::PeerId, mut stages: VecDeque<Vec<Multiaddr>>) {
        if peer == self.me || self.swarm.is_connected(&peer) {
            return;
        }
        let Some(first) = stages.pop_front() else {
            return;
        };
        // A circuit does not wait for direct dials that get no answer.
        let condition = if first.iter().all(is_relayed) {
            PeerCondition::Disconnected
        } else {
            PeerCondition::DisconnectedAndNotDialing
        };
        let options = DialOpts::peer_id(peer)
            .condition(condition)
            .addresses(first)
            .build();
        let id = options.connection_id();
        if !stages.is_empty() {
            self.fallbacks.insert(id, (peer, stages));
        }
        if let Err(error) = self.swarm.dial(options) {
            self.on_dial_failed(id, &error);
        }
    }

    /// Tries the remaining addresses after a failed dial.
    pub(super) fn on_dial_failed(&mut self, id: ConnectionId, error: &DialError) {
        if let Some((address, retry_in)) = self.bootstrap.failed(id, Instant::now()) {
            let reason = reason_of(error);
            self.tell(NetEvent::BootstrapFailed {
                address,
                reason,
                retry_in,
            });
        }
        let fallback = self.fallbacks.remove(&id);
        if matches!(error, DialError::DialPeerConditionFalse(_)) {
            return;
        }
        tracing::debug!(%error, "dial failed");
        if let Some((peer, stages)) = fallback {
            self.dial(peer, stages);
        }
    }

    /// Dials the addresses to join through that are due.
    pub(super) fn join_again(&mut self) {
        for address in self.bootstrap.due(Instant::now()) {
            let connected = address
                .iter()
                .any(|part| matches!(part, Protocol::P2p(peer) if self.swarm.is_connected(&peer)));
            if connected {
                self.bootstrap.already_connected(&address);
                continue;
            }
            if name_of(&address).is_none() {
                self.dial_join(&address, address.clone());
                continue;
            }
            self.bootstrap.resolving(&address);
            let network = self.opener.network.clone();
            // One task for each address, which ends within the deadline of a lookup.
            self.tasks.spawn(async move {
                let found = resolve(&address).await;
                // If the network has ended, the address is no longer needed.
                let _ = network.send(Internal::Resolved { address, found }).await;
            });
        }
    }

    /// Dials an address to join after its name was looked up.
    pub(super) fn on_resolved(
        &mut self,
        address: Multiaddr,
        found: Result<Vec<Multiaddr>, String>,
    ) {
        match found {
            Ok(found) => {
                if let Some(at) = self.bootstrap.resolved(&address, &found) {
                    self.dial_join(&address, at);
                }
            }
            Err(reason) => {
                if let Some(retry_in) = self.bootstrap.unresolved(&address, Instant::now()) {
                    self.tell(NetEvent::BootstrapFailed {
                        address,
                        reason,
                        retry_in,
                    });
                }
            }
        }
    }

    fn dial_join(&mut self, address: &Multiaddr, at: Multiaddr) {
        let options = DialOpts::unknown_peer_id().address(at).build();
        let id = options.connection_id();
        self.bootstrap.dialling(address, id);
        if let Err(error) = self.swarm.dial(options) {
            self.on_dial_failed(id, &error);
        }
    }

    /// Handles a connected peer's addresses and protocols.
    pub(super) fn on_identify(&mut self, event: identify::Event) {
        let (identify::Event::Received {
            connection_id,
            peer_id,
            info,
        }
        | identify::Event::Pushed {
            connection_id,
            peer_id,
            info,
        }) = event
        else {
            return;
        };
        self.on_identified(peer_id, connection_id, &info);
    }

    /// Handles peers on the local network. Anyone there can announce peers that do not exist, and all are
    /// remembered for as long as the announcement says, so after too many of them no one listens any more.
    pub(super) fn on_mdns(&mut self, event: mdns::Event) {
        let mdns::Event::Discovered(peers) = event else {
            return;
        };
        let mdns = &mut self.swarm.behaviour_mut().mdns;
        let known = mdns
            .as_ref()
            .map_or(0, |mdns| mdns.discovered_nodes().len());
        if known > MDNS_ADDRESSES_MAX {
            *mdns = Toggle::from(None);
            let text = format!(
                "more than {MDNS_ADDRESSES_MAX} addresses were announced on the local network by mDNS, and some \
                 machine there invents them: this daemon looks for no more peers in this way until it starts \
                 again; give it addresses with --join"
            );
            self.tell(NetEvent::Notice(text));
            return;
        }
        for (peer, address) in peers {
            self.found(peer, vec![address]);
        }
    }

    /// Dials a discovered peer unless there are enough links, or too many such dials are under way already.
    fn found(&mut self, peer: identity::PeerId, addresses: Vec<Multiaddr>) {
        let now = Instant::now();
        self.avoided.retain(|_, until| *until > now);
        let dials = self
            .swarm
            .network_info()
            .connection_counters()
            .num_pending_outgoing();
        let wanted = self.links.len() < ACTIVE_LINKS_MAX
            && dials < FOUND_DIALS_MAX
            && !self.avoided.contains_key(&peer)
            && from_libp2p(&peer).is_some();
        if wanted {
            self.dial_all(peer, addresses);
        }
    }

    pub(super) fn avoid(&mut self, peer: identity::PeerId, time: Duration) {
        while self.avoided.len() >= AVOIDED_MAX {
            let earliest = self.avoided.iter().min_by_key(|(_, until)| **until);
            let Some(earliest) = earliest.map(|(peer, _)| *peer) else {
                break;
            };
            self.avoided.remove(&earliest);
        }
        self.avoided.insert(peer, Instant::now() + time);
    }

    /// Handles a new listening address: announces it, or the configured addresses with the same
    /// transport.
    pub(super) fn on_listening(&mut self, address: Multiaddr) {
        let told = match &self.announce {
            Some(all) if !is_relayed(&address) => {
                let quic = is_quic(&address);
                all.iter().filter(|a| is_quic(a) == quic).cloned().collect()
            }
            _ => vec![address],
        };
        // Peers that reserve learn these addresses from us; no other peer confirms them.
        for address in told.iter().filter(|address| !is_relayed(address)) {
            if self.relays && self.announce.is_none() {
                self.swarm.add_external_address(address.clone());
            } else if self.nat.serves() {
                let nat = &mut self.swarm.behaviour_mut().gated.inner.nat;
                nat.serves_at(address);
            }
        }
        if told.iter().any(is_relayed) && !self.nat.is_private() {
            for circuit in told {
                self.announce_circuit(circuit);
            }
        } else {
            self.announce_addresses(told);
        }
    }

    /// Adds the address of a circuit for a missing link to this peer's record. Others do not join there.
    fn announce_circuit(&mut self, circuit: Multiaddr) {
        let relay = relay_of(&circuit);
        let same = |address: &&Multiaddr| relay_of(address) == relay;
        let told = self.record.addresses().filter(same).count();
        if told < CIRCUITS_TOLD && self.record.add(circuit) {
            self.renew_record();
        }
    }

    /// This peer's record says where in the network it is.
    pub(super) fn locate(&mut self, locality: Locality) {
        if self.record.locate(locality) {
            self.renew_record();
        }
    }

    /// Adds addresses to this peer's record.
    pub(super) fn announce_addresses(&mut self, addresses: Vec<Multiaddr>) {
        // Even with nothing to announce there is a record, because others find this peer's links by
        // it.
        let mut changed = self.announce.as_ref().is_some_and(Vec::is_empty);
        for address in addresses {
            if self.record.add(address.clone()) {
                changed = true;
                self.tell(NetEvent::Listening(address_with_peer(address, self.me)));
            }
        }
        if changed {
            self.renew_record();
        }
    }

    /// Removes addresses from this peer's record.
    pub(super) fn forget_addresses(&mut self, addresses: &[Multiaddr]) {
        let mut changed = false;
        for address in addresses {
            if self.record.remove(address) {
                changed = true;
                let address = address_with_peer(address.clone(), self.me);
                self.tell(NetEvent::NotListening(address));
            }
        }
        if changed {
            self.renew_record();
        }
    }
}

/// Why a dial failed, without the names of layers and the addresses, which its reader knows.
fn reason_of(error: &DialError) -> String {
    let DialError::Transport(failed) = error else {
        return error.to_string();
    };
    let mut reasons: Vec<String> = failed
        .iter()
        .filter_map(|(_, error)| words_of(error))
        .collect();
    reasons.dedup();
    if reasons.is_empty() {
        return error.to_string();
    }
    reasons.join("; ")
}

/// The first words of an error or its causes that say something.
fn words_of(error: &dyn std::error::Error) -> Option<String> {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.find_map(|error| Some(error.to_string()).filter(|words| !words.is_empty()))
}
