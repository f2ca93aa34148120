//! What the network's task knows of the gate: the connections that have not passed it yet, with their bounds,
//! and whom to tell the owner's directives again.

use super::handshake::GATE_WAIT;
use super::membership::Membership;
use super::news;
use crate::descriptors::Places;
use crate::net::bucket::Budget;
use crate::net::nat::Connection;
use crate::net::unproven::{Allowances, Network, Unproven, network_of};
use libp2p::swarm::ConnectionId;
use libp2p::{Stream, identity};
use murmurate_net::places::oldest_of_the_most;
use murmurate_protocol::wire::WireVersions;
use murmurate_protocol::{PeerId, SortedMap, SortedSet};
use murmurate_trust::{Chain, Role, Roles};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Streams of one peer's news that wait until another one of that peer was read: several things may be new
/// within a second.
const NEWS_WAITING_MAX: usize = 8;

/// Time between two looks at the members: how long a link may outlive a certificate.
const LOOK_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(in crate::net) struct Gate {
    /// Connections that have not passed yet.
    pub(in crate::net) pending: PendingPeers,
    /// What connections over TCP may bring that have not passed.
    pub(super) allowances: Allowances,
    pub(super) membership: Arc<Membership>,
    /// The versions of the wire that this daemon speaks.
    pub(super) wire: WireVersions,
    pub(super) chains: SortedMap<PeerId, Chain>,
    /// Peers whose news are being read, with their streams that wait for that.
    pub(super) telling: SortedMap<PeerId, VecDeque<Stream>>,
    /// What peers may send in news.
    pub(super) budget: Budget,
    pub(super) repeat: Repeat,
    look_at: Instant,
    /// Peers whose register is another, so that they are told ours.
    pub(super) to_tell: SortedSet<PeerId>,
}

impl Gate {
    pub(in crate::net) fn new(
        membership: Arc<Membership>,
        wire: WireVersions,
        unproven: Unproven,
    ) -> Self {
        Self {
            pending: PendingPeers::new(unproven.places),
            allowances: unproven.allowances,
            membership,
            wire,
            chains: SortedMap::new(),
            telling: SortedMap::new(),
            budget: news::budget(),
            repeat: Repeat::new(),
            look_at: Instant::now() + LOOK_EVERY,
            to_tell: SortedSet::new(),
        }
    }

    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        let own = self.repeat.at().min(self.look_at);
        let pending = self.pending.next_at();
        Some(pending.map_or(own, |at| at.min(own)))
    }

    /// Due every ten seconds.
    pub(super) fn looks(&mut self, now: Instant) -> bool {
        let due = self.look_at <= now;
        if due {
            self.look_at = now + LOOK_EVERY;
        }
        due
    }

    /// The role in the certificate that a peer has shown. A peer without one takes no part.
    pub(in crate::net) fn role_of(&self, peer: &PeerId) -> Role {
        let roles = self.chains.get(peer).and_then(Chain::roles);
        roles.and_then(Roles::role).unwrap_or(Role::Relay)
    }

    /// A peer tells news on a stream. Returns the stream if it can be read at once; one at a time is.
    pub(super) fn tells(&mut self, peer: PeerId, stream: Stream) -> Option<Stream> {
        let Some(waiting) = self.telling.get_mut(&peer) else {
            self.telling.insert(peer, VecDeque::new());
            return Some(stream);
        };
        // What more streams would tell is told when the registers are compared.
        if waiting.len() < NEWS_WAITING_MAX {
            waiting.push_back(stream);
        }
        None
    }

    /// A stream of news has ended. Returns the next one of the peer.
    pub(super) fn told(&mut self, peer: &PeerId) -> Option<Stream> {
        let next = self.telling.get_mut(peer)?.pop_front();
        if next.is_none() {
            self.telling.remove(peer);
        }
        next
    }
}

/// Time between two peers. Directives are 8 KiB at most.
const EVERY: Duration = Duration::from_secs(10);

/// Tells the owner's directives again, to one linked peer after the other: a peer that has missed one would pause, or
/// train by other rules, without the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    at: Instant,
    last: Option<PeerId>,
}

impl Repeat {
    /// No one was told yet.
    pub(super) fn new() -> Self {
        Self {
            at: Instant::now() + EVERY,
            last: None,
        }
    }

    /// When the next peer is due.
    pub(super) const fn at(&self) -> Instant {
        self.at
    }

    /// The next one of these peers, if it is due.
    pub(super) fn next(&mut self, now: Instant, peers: &[PeerId]) -> Option<PeerId> {
        if now < self.at {
            return None;
        }
        self.at = now + EVERY;
        let last = self.last;
        let behind = peers
            .iter()
            .filter(|peer| last.is_none_or(|last| **peer > last));
        self.last = behind.min().or(peers.iter().min()).copied();
        self.last
    }
}

/// Inbound connections that may be at the gate. One more ends the oldest of the network that has
/// most of them, so strangers of one network cannot keep members of others out.
const UNPROVEN_MAX: usize = 64;

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
    pub(super) punched: bool,
    /// Set once the connection has ended, and only its task is left.
    pub(super) closed: bool,
    from: Network,
    until: Instant,
}

/// Connections that have not passed the gate yet. Reads no clock; callers pass the time.
#[derive(Debug)]
pub(in crate::net) struct PendingPeers {
    all: SortedMap<ConnectionId, AtGate>,
    /// Inbound ones that may be unproven.
    most: usize,
}

impl PendingPeers {
    pub(super) fn new(places: Places) -> Self {
        Self {
            all: SortedMap::new(),
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

    pub(in crate::net) fn punched(&mut self, id: ConnectionId) {
        if let Some(at) = self.all.get_mut(&id) {
            at.punched = true;
        }
    }

    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        self.all.values().map(|at| at.until).min()
    }

    pub(super) fn expired(&self, now: Instant) -> Vec<ConnectionId> {
        let late = self.all.iter().filter(|(_, at)| at.until <= now);
        late.map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::from_libp2p;
    use libp2p::core::ConnectedPoint;

    #[test]
    fn every_peer_has_its_turn() {
        let mut repeat = Repeat::new();
        let peers = [3, 1, 2].map(|n| PeerId::from_bytes([n; 32]));
        let start = repeat.at();
        assert_eq!(repeat.next(start - EVERY, &peers), None);
        let turns = (0..4).map(|n| repeat.next(start + n * EVERY, &peers));
        let turns: Vec<u8> = turns
            .map(|peer| peer.expect("a peer").as_bytes()[0])
            .collect();
        assert_eq!(turns, [1, 2, 3, 1]);
        assert_eq!(repeat.next(start + 9 * EVERY, &[]), None);
    }

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
