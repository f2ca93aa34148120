//! Connections whose peer has not greeted yet: few at a time, few from one network, and not for long.
//! Otherwise links that never say a word would keep those out that want to join.
//!
//! Reads no clock; callers pass the time.

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tokio::time::Instant;

/// Connections without a greeting at a time.
const NEWCOMERS_MAX: usize = 32;

/// Of these, from one network: an IPv4 /24 or an IPv6 /56, as providers give them to one customer.
const PER_NETWORK_MAX: usize = 4;

/// How long a peer may take to greet.
const GREETING_WAIT: Duration = Duration::from_secs(5);

/// A newcomer of this age makes room for the next one.
const ROOM_AFTER: Duration = Duration::from_secs(1);

/// The network that an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    V4([u8; 3]),
    V6([u8; 7]),
    /// A relay carries the connection, which has its own limits.
    Relayed,
}

#[derive(Clone, Copy, Debug)]
struct Newcomer {
    peer: PeerId,
    network: Network,
    since: Instant,
}

/// What to do with a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Keep it.
    Welcome,
    /// Keep it, and close this one, which has had its time.
    Instead(ConnectionId),
    /// Close it.
    Full,
}

/// Connections that others opened and whose peers have not greeted, and the peers that have.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    waiting: BTreeMap<ConnectionId, Newcomer>,
    greeted: BTreeSet<PeerId>,
}

impl Newcomers {
    /// A peer opened a connection. Peers that have greeted, and programs of this machine, are not
    /// limited.
    pub(super) fn arrived(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        from: &Multiaddr,
        now: Instant,
    ) -> Entry {
        let Some(network) = network_of(from).filter(|_| !self.greeted.contains(&peer)) else {
            return Entry::Welcome;
        };
        let near = self
            .waiting
            .values()
            .filter(|other| other.network == network);
        let crowded = network != Network::Relayed && near.count() >= PER_NETWORK_MAX;
        let mut entry = Entry::Welcome;
        if crowded || self.waiting.len() >= NEWCOMERS_MAX {
            let same = |other: &Newcomer| !crowded || other.network == network;
            let oldest = self.waiting.iter().filter(|(_, other)| same(other));
            let oldest = oldest.min_by_key(|(_, other)| other.since);
            let old = oldest.filter(|(_, other)| now.duration_since(other.since) >= ROOM_AFTER);
            let Some((old, _)) = old else {
                return Entry::Full;
            };
            let old = *old;
            self.waiting.remove(&old);
            entry = Entry::Instead(old);
        }
        let since = now;
        let newcomer = Newcomer {
            peer,
            network,
            since,
        };
        self.waiting.insert(connection, newcomer);
        entry
    }

    /// A peer has greeted.
    pub(super) fn greeted(&mut self, peer: PeerId) {
        self.waiting.retain(|_, newcomer| newcomer.peer != peer);
        self.greeted.insert(peer);
    }

    /// A connection closed; `last` tells that its peer has no other.
    pub(super) fn closed(&mut self, connection: ConnectionId, peer: PeerId, last: bool) {
        self.waiting.remove(&connection);
        if last {
            self.greeted.remove(&peer);
        }
    }

    /// When the next connection has had its time.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let since = self.waiting.values().map(|newcomer| newcomer.since).min();
        since.map(|since| since + GREETING_WAIT)
    }

    /// The connections that have had their time. They must be closed.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<ConnectionId> {
        let late = |newcomer: &Newcomer| now.duration_since(newcomer.since) >= GREETING_WAIT;
        let late = self.waiting.iter().filter(|(_, newcomer)| late(newcomer));
        let late: Vec<ConnectionId> = late.map(|(id, _)| *id).collect();
        for id in &late {
            self.waiting.remove(id);
        }
        late
    }
}

/// The network of an address; `None` for this machine.
fn network_of(address: &Multiaddr) -> Option<Network> {
    if address
        .iter()
        .any(|part| matches!(part, Protocol::P2pCircuit))
    {
        return Some(Network::Relayed);
    }
    let v4 = |ip: Ipv4Addr| {
        let [a, b, c, _] = ip.octets();
        (!ip.is_loopback()).then_some(Network::V4([a, b, c]))
    };
    let v6 = |ip: Ipv6Addr| {
        let [a, b, c, d, e, f, g, ..] = ip.octets();
        (!ip.is_loopback()).then_some(Network::V6([a, b, c, d, e, f, g]))
    };
    match address.iter().next()? {
        Protocol::Ip4(ip) => v4(ip),
        Protocol::Ip6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => v4(ip),
            None => v6(ip),
        },
        _ => Some(Network::Relayed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: usize) -> ConnectionId {
        ConnectionId::new_unchecked(id)
    }

    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    fn at(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn few_from_one_network_and_few_in_all() {
        let mut newcomers = Newcomers::default();
        let now = Instant::now();
        let near = at("/ip4/192.0.2.9/udp/1/quic-v1");
        for number in 0..PER_NETWORK_MAX {
            let entry = newcomers.arrived(id(number), peer(number as u8), &near, now);
            assert_eq!(entry, Entry::Welcome);
        }
        let other = at("/ip4/192.0.2.200/tcp/9");
        assert_eq!(
            newcomers.arrived(id(90), peer(90), &other, now),
            Entry::Full
        );
        let later = now + ROOM_AFTER;
        let entry = newcomers.arrived(id(91), peer(91), &other, later);
        assert_eq!(entry, Entry::Instead(id(0)));
        for number in PER_NETWORK_MAX..NEWCOMERS_MAX {
            let from = at(&format!("/ip4/10.0.{number}.1/tcp/9"));
            let entry = newcomers.arrived(id(number), peer(7), &from, later);
            assert_eq!(entry, Entry::Welcome);
        }
        let far = at("/ip6/2001:db8::1/udp/1/quic-v1");
        let entry = newcomers.arrived(id(92), peer(92), &far, later);
        assert_eq!(entry, Entry::Instead(id(1)), "the oldest of all");
        let here = at("/ip4/127.0.0.1/tcp/9");
        assert_eq!(
            newcomers.arrived(id(93), peer(93), &here, later),
            Entry::Welcome
        );
    }

    #[test]
    fn a_peer_that_greets_stays_and_is_not_limited_again() {
        let mut newcomers = Newcomers::default();
        let now = Instant::now();
        let from = at("/ip6/2001:db8::1/udp/1/quic-v1");
        for number in 0..2 {
            newcomers.arrived(id(number), peer(number as u8), &from, now);
        }
        newcomers.greeted(peer(0));
        assert_eq!(newcomers.next_at(), Some(now + GREETING_WAIT));
        assert_eq!(newcomers.expired(now + GREETING_WAIT), [id(1)]);
        assert_eq!(newcomers.next_at(), None);
        for number in 10..30 {
            let entry = newcomers.arrived(id(number), peer(0), &from, now);
            assert_eq!(entry, Entry::Welcome, "a member opens what it needs");
        }
        newcomers.closed(id(0), peer(0), true);
        newcomers.arrived(id(40), peer(0), &from, now);
        assert_eq!(
            newcomers.next_at(),
            Some(now + GREETING_WAIT),
            "it must greet again"
        );
    }
}
