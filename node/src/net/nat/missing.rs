//! Connects the missing links to the network's task: their dials, directly and through other members.

use crate::net::from_libp2p;
use crate::net::ids::to_libp2p;
use crate::net::nat::gaps::Step;
use crate::net::nat::path::without_peer;
use crate::net::nat::{is_relayed, relay_of};
use crate::net::record::{self, REFRESH};
use crate::net::swarm::Network;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, identity};
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::PeerRecord;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Other members through which one dial goes, one after the other. Each answers within a round trip.
const THROUGH_MAX: usize = 16;

impl Network {
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

    /// Does what is due about missing links.
    pub(super) fn close_gaps(&mut self, now: Instant) {
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
        let options = DialOpts::peer_id(peer)
            .condition(PeerCondition::Always)
            .addresses(addresses)
            .build();
        if let Err(error) = self.swarm.dial(options) {
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
