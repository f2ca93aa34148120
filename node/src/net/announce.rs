//! Decides which addresses to tell other peers: the listening addresses, or those that the
//! configuration announces.

use crate::net::NetEvent;
use crate::net::ids::address_with_peer;
use crate::net::nat::is_relayed;
use crate::net::record::is_quic;
use crate::net::swarm::Network;
use libp2p::Multiaddr;
use murmurate_protocol::Locality;

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
        if self.relays && self.announce.is_none() {
            // Peers that reserve learn these addresses from us; no other peer confirms them.
            for address in &told {
                self.swarm.add_external_address(address.clone());
            }
        }
        self.announce_addresses(told);
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
