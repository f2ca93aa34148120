//! Connections that have not passed the gate yet, and their bounds.
//!
//! Reads no clock; callers pass the time.

use super::handshake::GATE_WAIT;
use crate::descriptors::Places;
use crate::net::nat::Connection;
use libp2p::identity;
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::swarm::ConnectionId;
use murmurate_net::places::{self, oldest_of_the_most};
use murmurate_protocol::PeerId;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Inbound connections that may be at the gate. One more ends the oldest of the network that has
/// most of them, so strangers of one network cannot keep members of others out.
const UNPROVEN_MAX: usize = 64;

/// One connection at the gate.
#[derive(Debug)]
pub(super) struct AtGate {
    pub(super) theirs: identity::PeerId,
    pub(super) peer: PeerId,
    pub(super) connection: Connection,
    /// Set where this end begins the handshake.
    pub(super) dials: bool,
    /// Set once a task runs the handshake.
    pub(super) running: bool,
    /// Set once the other end's certificates are good.
    pub(super) admitted: bool,
    /// Set where it is the result of hole punching.
    pub(super) punched: bool,
    /// Set once the connection has ended, and only its task is left.
    pub(super) closed: bool,
    from: Network,
    until: Instant,
}

/// The network that a connection comes from; `None` behind a relay.
pub(in crate::net) type Network = Option<places::Network>;

/// All connections at the gate.
#[derive(Debug)]
pub(in crate::net) struct PendingPeers {
    all: BTreeMap<ConnectionId, AtGate>,
    /// Inbound ones that may be unproven.
    most: usize,
}

impl PendingPeers {
    /// No connection is at the gate.
    pub(super) fn new(places: Places) -> Self {
        Self {
            all: BTreeMap::new(),
            most: places.of(UNPROVEN_MAX),
        }
    }

    /// Adds a connection. Returns one that must end, if there are too many.
    pub(super) fn add(
        &mut self,
        (theirs, peer): (identity::PeerId, PeerId),
        connection: Connection,
        dials: bool,
        now: Instant,
    ) -> Option<ConnectionId> {
        let at_gate = AtGate {
            theirs,
            peer,
            from: network_of(&connection.remote),
            dials,
            running: dials,
            admitted: false,
            punched: false,
            closed: false,
            until: now + GATE_WAIT,
            connection,
        };
        self.all.insert(at_gate.connection.id, at_gate);
        self.crowded()
    }

    /// The oldest inbound connection of the network that has most of them, if there are too many.
    fn crowded(&self) -> Option<ConnectionId> {
        let unproven = || self.all.iter().filter(|(_, at)| !at.dials && !at.admitted);
        if unproven().count() <= self.most {
            return None;
        }
        // Ids grow with time.
        oldest_of_the_most(unproven().map(|(id, at)| (*id, at.from)))
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut AtGate> {
        self.all.get_mut(&id)
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&AtGate> {
        self.all.get(&id)
    }

    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<AtGate> {
        self.all.remove(&id)
    }

    /// True where another connection of a peer has passed, or is about to.
    pub(super) fn has_admitted(&self, peer: &PeerId) -> bool {
        self.all.values().any(|at| at.peer == *peer && at.admitted)
    }

    /// Marks the connection as the result of hole punching.
    pub(in crate::net) fn punched(&mut self, id: ConnectionId) {
        if let Some(at) = self.all.get_mut(&id) {
            at.punched = true;
        }
    }

    /// When the first of them has had its time.
    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        self.all.values().map(|at| at.until).min()
    }

    /// Those that have had their time.
    pub(super) fn expired(&self, now: Instant) -> Vec<ConnectionId> {
        let late = self.all.iter().filter(|(_, at)| at.until <= now);
        late.map(|(id, _)| *id).collect()
    }
}

/// The network that a connection comes from.
pub(in crate::net) fn network_of(remote: &Multiaddr) -> Network {
    let relayed = remote.iter().any(|part| part == Protocol::P2pCircuit);
    if relayed {
        return None;
    }
    remote.iter().find_map(|part| match part {
        Protocol::Ip4(ip) => Some(places::network_of(ip.into())),
        Protocol::Ip6(ip) => Some(places::network_of(ip.into())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::from_libp2p;
    use libp2p::core::ConnectedPoint;

    fn inbound(
        pending: &mut PendingPeers,
        number: usize,
        from: &str,
        now: Instant,
    ) -> Option<ConnectionId> {
        let theirs = identity::Keypair::generate_ed25519().public().to_peer_id();
        let endpoint = ConnectedPoint::Listener {
            local_addr: "/ip4/10.0.0.1/tcp/1".parse().unwrap(),
            send_back_addr: from.parse().unwrap(),
        };
        let id = ConnectionId::new_unchecked(number);
        let connection = Connection::new(id, &endpoint, now);
        let ids = (theirs, from_libp2p(&theirs).unwrap());
        pending.add(ids, connection, false, now)
    }

    #[test]
    fn strangers_of_one_network_do_not_push_out_others() {
        let now = Instant::now();
        let mut pending = PendingPeers::new(Places::take().unwrap());
        assert_eq!(inbound(&mut pending, 0, "/ip4/10.1.1.1/tcp/9", now), None);
        for number in 1..UNPROVEN_MAX {
            let from = format!("/ip4/10.2.2.{number}/tcp/9");
            assert_eq!(inbound(&mut pending, number, &from, now), None);
        }
        for number in UNPROVEN_MAX..3 * UNPROVEN_MAX {
            let out = inbound(&mut pending, number, "/ip4/10.2.2.200/tcp/9", now).unwrap();
            assert_eq!(out, ConnectionId::new_unchecked(number - UNPROVEN_MAX + 1));
            pending.remove(out);
        }
        assert!(pending.get(ConnectionId::new_unchecked(0)).is_some());
        assert!(pending.expired(now).is_empty());
        assert_eq!(pending.next_at(), Some(now + GATE_WAIT));
        assert_eq!(pending.expired(now + GATE_WAIT).len(), UNPROVEN_MAX);
    }
}
