//! The connections of one link: their paths, and the choice of the one that carries it.

use crate::net::from_libp2p;
use libp2p::Multiaddr;
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::PortUse;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::WireVersion;
use std::time::Duration;
use tokio::time::Instant;

/// The path of a link's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// One end dialled the other directly.
    Direct,
    /// Directly, after hole punching.
    Punched,
    /// Through the relay with this id; `None` if the relay's key is not Ed25519.
    Relayed(Option<PeerId>),
}

impl Path {
    /// The path of a new connection, which may turn out later to be made by hole punching.
    pub(in crate::net) fn of(endpoint: &ConnectedPoint) -> Self {
        if endpoint.is_relayed() {
            Self::Relayed(relay_of(own_side(endpoint)).and_then(|p| from_libp2p(&p)))
        } else {
            Self::Direct
        }
    }

    /// True where a relay carries the packets.
    pub fn is_relayed(self) -> bool {
        matches!(self, Self::Relayed(_))
    }

    /// The name in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Punched => "punched",
            Self::Relayed(_) => "relayed",
        }
    }
}

/// The address that names the relay: the remote one if we dialled, otherwise our own.
fn own_side(endpoint: &ConnectedPoint) -> &Multiaddr {
    match endpoint {
        ConnectedPoint::Dialer { address, .. } => address,
        ConnectedPoint::Listener { local_addr, .. } => local_addr,
    }
}

pub(in crate::net) fn relay_of(address: &Multiaddr) -> Option<libp2p::PeerId> {
    let mut relay = None;
    for part in address {
        match part {
            Protocol::P2p(peer) => relay = Some(peer),
            Protocol::P2pCircuit => return relay,
            _ => {}
        }
    }
    None
}

pub(super) fn without_peer(mut address: Multiaddr) -> Multiaddr {
    if matches!(address.iter().last(), Some(Protocol::P2p(_))) {
        address.pop();
    }
    address
}

/// Dials of both ends within this time count as simultaneous.
const SIMULTANEOUS: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(in crate::net) struct Connection {
    pub(in crate::net) id: ConnectionId,
    pub(in crate::net) path: Path,
    /// Set where the peer dialled.
    pub(in crate::net) inbound: bool,
    pub(in crate::net) from_listening_port: bool,
    /// The dialled address, or the source address of the peer's packets.
    pub(in crate::net) remote: Multiaddr,
    /// The version of the wire that both ends use; known once it has passed the gate.
    pub(in crate::net) wire: WireVersion,
    since: Instant,
    /// Set once both ends are known to use this connection.
    proven: bool,
}

impl Connection {
    pub(in crate::net) fn new(id: ConnectionId, endpoint: &ConnectedPoint, now: Instant) -> Self {
        let reused = |endpoint: &ConnectedPoint| matches!(endpoint, ConnectedPoint::Dialer { port_use, .. } if *port_use == PortUse::Reuse);
        Self {
            id,
            path: Path::of(endpoint),
            inbound: endpoint.is_listener(),
            from_listening_port: reused(endpoint),
            remote: endpoint.get_remote_address().clone(),
            wire: WireVersion::NEWEST,
            since: now,
            // The dialling end uses the connection. The other end cannot know that, as it may be a
            // probe.
            proven: endpoint.is_dialer(),
        }
    }

    /// Where the peer dialled from over QUIC: one port, so two ports are those of two lives, or of two daemons.
    fn port(&self) -> Option<&Multiaddr> {
        let quic = self.remote.iter().any(|part| part == Protocol::QuicV1);
        let dialled = self.inbound && self.path == Path::Direct && quic;
        dialled.then_some(&self.remote)
    }
}

/// Conclusion from a control stream that a peer opened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Sign {
    /// No restart; the connection may carry the link.
    Usual,
    /// The peer does not know the earlier connections: it restarted, or lost them unnoticed.
    Restarted,
}

/// All connections of one link. Never empty while the link lives.
#[derive(Clone, Debug)]
pub(in crate::net) struct Connections {
    all: Vec<Connection>,
    since: Instant,
}

impl Connections {
    /// Starts with the first connection, which counts as used by both ends.
    pub(in crate::net) fn new(first: Connection) -> Self {
        let since = first.since;
        let proven = true;
        Self {
            all: vec![Connection { proven, ..first }],
            since,
        }
    }

    pub(in crate::net) fn add(&mut self, connection: Connection) {
        self.all.push(connection);
    }

    /// Removes a connection and returns whether none is left. If no remaining one is proven, the
    /// first of them is used.
    pub(in crate::net) fn remove(&mut self, id: ConnectionId) -> bool {
        self.all.retain(|connection| connection.id != id);
        let any = self.all.iter().any(|connection| connection.proven);
        if let Some(first) = self.all.first_mut().filter(|_| !any) {
            first.proven = true;
        }
        self.all.is_empty()
    }

    pub(in crate::net) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.all.iter().find(|connection| connection.id == id)
    }

    pub(in crate::net) fn all(&self) -> impl Iterator<Item = &Connection> {
        self.all.iter()
    }

    pub(in crate::net) fn ids(&self) -> impl Iterator<Item = ConnectionId> {
        self.all.iter().map(|connection| connection.id)
    }

    /// Marks a connection as made by hole punching. Returns whether the link has this connection.
    pub(in crate::net) fn punched(&mut self, id: ConnectionId) -> bool {
        let found = self.all.iter_mut().find(|connection| connection.id == id);
        found
            .map(|c| (c.path, c.proven) = (Path::Punched, true))
            .is_some()
    }

    /// Evaluates that the peer opened its control stream on this connection.
    ///
    /// A connected peer dials again only if both ends dialled at once, or to replace a relayed
    /// connection by a direct one. Otherwise it has restarted, or another daemon has its identity: then each of the
    /// two gets the link in turn, and with it the words of the other one.
    pub(in crate::net) fn controlled(&mut self, id: ConnectionId) -> Sign {
        let relayed = self.carrier().is_none_or(|c| c.path.is_relayed());
        let before = self.carrier().and_then(Connection::port).cloned();
        let since = self.since;
        let Some(connection) = self.all.iter_mut().find(|connection| connection.id == id) else {
            return Sign::Usual;
        };
        let upgrade = relayed && !connection.path.is_relayed();
        let late = connection.since.saturating_duration_since(since) > SIMULTANEOUS;
        let apart = before.is_some_and(|port| connection.port().is_some_and(|now| *now != port));
        if !connection.proven && (late || apart) && !upgrade {
            return Sign::Restarted;
        }
        connection.proven = true;
        Sign::Usual
    }

    /// The connection that carries the link: the oldest direct one, or else the oldest relayed one.
    /// Preferring the oldest avoids needless moves.
    pub(in crate::net) fn carrier(&self) -> Option<&Connection> {
        let proven = || self.all.iter().filter(|connection| connection.proven);
        proven()
            .find(|connection| !connection.path.is_relayed())
            .or_else(|| proven().next())
    }

    /// Relayed connections that do not carry the link.
    pub(in crate::net) fn spare(&self) -> Vec<ConnectionId> {
        let carrier = self.carrier().map(|connection| connection.id);
        let relayed = self.all.iter().filter(|c| c.path.is_relayed());
        let spare = relayed.filter(|connection| Some(connection.id) != carrier);
        spare.map(|connection| connection.id).collect()
    }

    /// Relayed connections that a direct one has replaced.
    pub(in crate::net) fn superseded(&self) -> Vec<ConnectionId> {
        if self.carrier().is_some_and(|c| !c.path.is_relayed()) {
            self.spare()
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::core::Endpoint;
    use libp2p::core::transport::PortUse;
    use libp2p::identity::Keypair;

    #[test]
    fn the_relay_is_the_peer_before_the_circuit() {
        let [relay, other] = [(), ()].map(|()| Keypair::generate_ed25519().public().to_peer_id());
        let text = format!("/ip4/192.0.2.1/udp/1/quic-v1/p2p/{relay}/p2p-circuit/p2p/{other}");
        let circuit: Multiaddr = text.parse().unwrap();
        assert_eq!(relay_of(&circuit), Some(relay));
        let plain: Multiaddr = format!("/ip4/192.0.2.1/tcp/1/p2p/{other}").parse().unwrap();
        assert_eq!(relay_of(&plain), None);
        let dialled = |address: &Multiaddr| ConnectedPoint::Dialer {
            address: address.clone(),
            role_override: Endpoint::Dialer,
            port_use: PortUse::Reuse,
        };
        assert_eq!(Path::of(&dialled(&plain)), Path::Direct);
        let expected = Path::Relayed(from_libp2p(&relay));
        assert_eq!(Path::of(&dialled(&circuit)), expected);
        let arrived = ConnectedPoint::Listener {
            local_addr: circuit,
            send_back_addr: plain,
        };
        assert_eq!(Path::of(&arrived), expected);
        assert!(expected.is_relayed() && expected.name() == "relayed");
    }

    fn connection(id: usize, relayed: bool, inbound: bool, since: Instant) -> Connection {
        Connection {
            id: ConnectionId::new_unchecked(id),
            path: if relayed {
                Path::Relayed(None)
            } else {
                Path::Direct
            },
            inbound,
            from_listening_port: !inbound,
            wire: WireVersion::NEWEST,
            remote: Multiaddr::empty(),
            since,
            proven: !inbound,
        }
    }

    fn id(id: usize) -> ConnectionId {
        ConnectionId::new_unchecked(id)
    }

    fn carrier(connections: &Connections) -> Option<ConnectionId> {
        connections.carrier().map(|connection| connection.id)
    }

    #[test]
    fn a_direct_connection_takes_over_from_a_relayed_one() {
        let now = Instant::now();
        let later = now + 2 * SIMULTANEOUS;
        let mut link = Connections::new(connection(1, true, true, now));
        assert_eq!(carrier(&link), Some(id(1)));
        link.add(connection(2, false, false, later));
        assert_eq!(carrier(&link), Some(id(2)));
        assert_eq!(link.superseded(), [id(1)]);
        assert!(link.punched(id(2)) && !link.punched(id(9)));
        assert_eq!(link.carrier().unwrap().path, Path::Punched);
        assert!(!link.remove(id(2)));
        assert_eq!(carrier(&link), Some(id(1)));
        link.add(connection(3, true, false, later));
        assert!(link.superseded().is_empty());
        assert_eq!(link.spare(), [id(3)]);
        assert!(!link.remove(id(3)) && link.remove(id(1)));
    }

    #[test]
    fn an_inbound_connection_waits_for_its_first_control_stream() {
        let now = Instant::now();
        let later = now + 2 * SIMULTANEOUS;
        let mut link = Connections::new(connection(1, true, false, now));
        link.add(connection(2, false, true, later));
        assert_eq!(carrier(&link), Some(id(1)), "it may be a test of AutoNAT's");
        assert_eq!(
            link.controlled(id(2)),
            Sign::Usual,
            "direct instead of relayed"
        );
        assert_eq!(carrier(&link), Some(id(2)));
    }

    #[test]
    fn a_peer_that_dials_again_and_speaks_was_restarted() {
        let now = Instant::now();
        let later = now + 2 * SIMULTANEOUS;
        let mut link = Connections::new(connection(1, false, true, now));
        link.add(connection(2, false, true, now + SIMULTANEOUS));
        assert_eq!(link.controlled(id(2)), Sign::Usual, "both dialled at once");
        link.add(connection(3, false, true, later));
        assert_eq!(link.controlled(id(3)), Sign::Restarted);
        link.add(connection(4, true, true, later));
        assert_eq!(link.controlled(id(4)), Sign::Restarted);
        assert_eq!(link.controlled(id(1)), Sign::Usual);
    }

    #[test]
    fn a_peer_that_dials_from_two_ports_is_two_daemons_or_two_lives() {
        let now = Instant::now();
        let from = |id, port| Connection {
            remote: format!("/ip4/127.0.0.1/udp/{port}/quic-v1")
                .parse()
                .unwrap(),
            ..connection(id, false, true, now)
        };
        let mut link = Connections::new(from(1, 4001));
        link.add(from(2, 4001));
        assert_eq!(
            link.controlled(id(2)),
            Sign::Usual,
            "it dialled two of our addresses"
        );
        link.add(from(3, 4002));
        assert_eq!(link.controlled(id(3)), Sign::Restarted);
    }

    #[test]
    fn what_is_left_carries_the_link() {
        let now = Instant::now();
        let mut link = Connections::new(connection(1, false, true, now));
        link.add(connection(2, false, true, now + 2 * SIMULTANEOUS));
        assert!(!link.remove(id(1)));
        assert_eq!(carrier(&link), Some(id(2)));
    }
}
