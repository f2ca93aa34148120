//! Decides which addresses to tell other peers: the listening addresses, or those that the
//! configuration announces.

use crate::net::NetEvent;
use crate::net::ids::address_with_peer;
use crate::net::nat::{is_relayed, relay_of};
use crate::net::record::is_quic;
use crate::net::swarm::Network;
use libp2p::Multiaddr;
use murmurate_protocol::Locality;

/// Addresses of a circuit for a missing link that this peer's record names: those who need them are linked
/// with the relay, so they need none of its addresses.
const CIRCUITS_TOLD: usize = 2;

impl Network {
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
        match told.iter().any(is_relayed) && !self.nat.is_private() {
            true => told
                .into_iter()
                .for_each(|circuit| self.announce_circuit(circuit)),
            false => self.announce_addresses(told),
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
