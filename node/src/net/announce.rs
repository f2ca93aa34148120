//! Which addresses others are told: those where this peer listens, or those that it was told to announce.

use crate::net::NetEvent;
use crate::net::ids::address_with_peer;
use crate::net::nat::is_relayed;
use crate::net::record::is_quic;
use crate::net::swarm::Network;
use libp2p::Multiaddr;

impl Network {
    /// It listens on an address: others are told this one, or those to announce of the same transport.
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

    /// Others are told these addresses, too.
    pub(super) fn announce_addresses(&mut self, addresses: Vec<Multiaddr>) {
        // Who announces nothing still has a record: others find its links by it.
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

    /// Others are not told these addresses any more.
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
