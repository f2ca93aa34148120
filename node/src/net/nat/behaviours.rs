//! libp2p's protocols for peers behind routers, combined into one behaviour, with the bounds of the relay that a daemon
//! runs for others.

use crate::net::NetConfig;
use crate::net::gate::Members;
use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::behaviour::ExternalAddrConfirmed;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::handler::ConnectionEvent;
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
    dummy,
};
use libp2p::{Multiaddr, PeerId, autonat, dcutr, relay};
use murmurate_protocol::limits::VIEW_PEERS_MAX;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The protocols for peers behind routers.
#[derive(NetworkBehaviour)]
pub(in crate::net) struct Behaviours {
    /// Dials, and is dialled, through relays.
    client: relay::client::Behaviour,
    /// Relays for others, unless the configuration forbids it.
    server: Toggle<relay::Behaviour>,
    /// Replaces a relayed connection by a direct one (hole punching).
    punch: Quiet<dcutr::Behaviour>,
    /// Asks others to dial this daemon. Off if the configuration announces addresses.
    probe: Toggle<autonat::v2::client::Behaviour>,
    /// Dials others on request, from a port that differs from the one they know.
    prober: autonat::v2::server::Behaviour,
    /// Passes on the addresses at which others saw this daemon.
    pub(super) observed: Observed,
}

impl Behaviours {
    /// Builds the protocols for the daemon `me`. `client` belongs to the relay transport; the
    /// daemon relays only for `members`.
    pub(in crate::net) fn new(
        config: &NetConfig,
        me: PeerId,
        client: relay::client::Behaviour,
        members: &Members,
    ) -> Self {
        let told = config.announce.as_ref().is_some_and(|all| !all.is_empty());
        let server = bounds(config).map(|bounds| server(me, members, bounds));
        Self {
            client,
            server: server.into(),
            punch: Quiet(dcutr::Behaviour::new(me)),
            probe: (!told).then(autonat::v2::client::Behaviour::default).into(),
            prober: autonat::v2::server::Behaviour::default(),
            observed: Observed::default(),
        }
    }

    /// Tells those who reserve here that others can dial this daemon at `address`. libp2p confirms no
    /// address of a daemon that no one tested.
    pub(in crate::net) fn serves_at(&mut self, address: &Multiaddr) {
        if let Some(server) = self.server.as_mut() {
            let event = ExternalAddrConfirmed { addr: address };
            server.on_swarm_event(FromSwarm::ExternalAddrConfirmed(event));
        }
    }
}

/// What a relay carries at most at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Peers that may be reachable through this daemon.
    reservations: usize,
    /// Open circuits.
    circuits: usize,
    /// Open circuits of one peer, as source and as destination.
    circuits_per_peer: usize,
}

/// A daemon that is there to relay. A link has two circuits if both ends dialled, so this suffices for a
/// group of sixteen daemons of which no two can connect directly.
pub(super) const FOR_ALL: Bounds = Bounds {
    reservations: VIEW_PEERS_MAX,
    circuits: 256,
    circuits_per_peer: 32,
};

/// A daemon that takes part, and carries a few links of members that it is linked with: its own bytes
/// come first.
const FOR_LINKED: Bounds = Bounds {
    reservations: 64,
    circuits: 32,
    circuits_per_peer: 4,
};

/// Reservations of one peer: one per connection, and one more while a connection is replaced.
const RESERVATIONS_PER_PEER_MAX: usize = 2;

/// Lifetime of a reservation. Its holder renews it before it ends.
const RESERVATION_LIFETIME: Duration = Duration::from_secs(3600);

/// Bytes of one circuit in both directions. A circuit carries the slices of all rounds: at 400 MB
/// per round (a hundred million parameters as f32) this lasts for 640 rounds.
const CIRCUIT_BYTES_MAX: u64 = 256 << 30;

/// Lifetime of one circuit. Its ends then open another one.
const CIRCUIT_LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Requests of each kind that one peer may make in a burst; one more is allowed every second.
const REQUESTS_BURST: NonZeroU32 = NonZeroU32::new(60).expect("60 is not zero");

/// Time after which one more request is allowed.
const REQUESTS_EVERY: Duration = Duration::from_secs(1);

/// The bounds of the relay that a daemon runs, if it runs one. One that announces no address has none to
/// tell those who reserve.
pub(super) fn bounds(config: &NetConfig) -> Option<Bounds> {
    let nowhere = config.announce.as_ref().is_some_and(Vec::is_empty);
    if config.relay {
        return Some(FOR_ALL);
    }
    (config.carry_links && !nowhere).then_some(FOR_LINKED)
}

/// How a daemon describes itself to members (identify): as one that is there to relay, or as any other.
pub(in crate::net) fn agent(config: &NetConfig) -> String {
    let agent = if config.relay { RELAY } else { MEMBER };
    agent.to_owned()
}

/// The name of a daemon that is there to relay.
pub(super) const RELAY: &str = "murmurate-relay";

/// The name of any other daemon.
const MEMBER: &str = "murmurate";

/// A relay for `members` with these bounds.
pub(super) fn server(me: PeerId, members: &Members, bounds: Bounds) -> relay::Behaviour {
    let only = || -> Box<dyn relay::RateLimiter> {
        let members = members.clone();
        Box::new(move |peer: PeerId, _: &Multiaddr, _: Instant| members.has(&peer))
    };
    let config = relay::Config {
        max_reservations: bounds.reservations,
        max_reservations_per_peer: RESERVATIONS_PER_PEER_MAX,
        reservation_duration: RESERVATION_LIFETIME,
        reservation_rate_limiters: vec![only()],
        max_circuits: bounds.circuits,
        max_circuits_per_peer: bounds.circuits_per_peer,
        max_circuit_duration: CIRCUIT_LIFETIME_MAX,
        max_circuit_bytes: CIRCUIT_BYTES_MAX,
        circuit_src_rate_limiters: vec![only()],
    };
    let config = config
        .reservation_rate_per_peer(REQUESTS_BURST, REQUESTS_EVERY)
        .circuit_src_per_peer(REQUESTS_BURST, REQUESTS_EVERY);
    let mut server = relay::Behaviour::new(me, config);
    // Those who reserve are linked already; libp2p would wait for a proof that others can dial it.
    server.set_status(Some(relay::Status::Enable));
    server
}

/// Addresses that are remembered as told. The oldest is forgotten first. DCUtR keeps the same
/// number.
const TOLD_MAX: usize = 20;

/// Tells the swarm once at which address others saw this daemon, without changing the port.
///
/// If the observed port differs from the listening port, libp2p's identify reports the listening port instead. Behind
/// a router that assigns its own ports, such an address is useless: AutoNAT would test it, and DCUtR would offer it,
/// although no mapping exists for it.
#[derive(Debug, Default)]
pub(in crate::net) struct Observed {
    told: VecDeque<Multiaddr>,
    queue: VecDeque<Multiaddr>,
}

impl Observed {
    /// Adds the `address` at which a peer saw us when we dialled from our listening port.
    pub(super) fn saw(&mut self, address: &Multiaddr) {
        if self.told.contains(address) {
            return;
        }
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(address.clone());
        self.queue.push_back(address.clone());
    }
}

impl NetworkBehaviour for Observed {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        // No waker is needed: the queue only grows inside the swarm's task.
        let next = self
            .queue
            .pop_front()
            .map(ToSwarm::NewExternalAddrCandidate);
        next.map_or(Poll::Pending, Poll::Ready)
    }
}

/// `B` with handlers that never keep a connection open.
///
/// DCUtR's handler keeps a relayed connection open forever after it has led to a direct one. Here only the link keeps
/// connections, so a relayed one ends after its last stream.
#[derive(Debug)]
pub(in crate::net) struct Quiet<B>(pub(super) B);

impl<B: NetworkBehaviour> NetworkBehaviour for Quiet<B> {
    type ConnectionHandler = Quiet<THandler<B>>;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.0.handle_pending_inbound_connection(id, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = &mut self.0;
        inner
            .handle_established_inbound_connection(id, peer, local, remote)
            .map(Quiet)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        let inner = &mut self.0;
        inner.handle_pending_outbound_connection(id, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = &mut self.0;
        inner
            .handle_established_outbound_connection(id, peer, address, role, port)
            .map(Quiet)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.0.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        id: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        self.0.on_connection_handler_event(peer, id, event);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<B::ToSwarm, THandlerInEvent<Self>>> {
        self.0.poll(cx)
    }
}

impl<H: ConnectionHandler> ConnectionHandler for Quiet<H> {
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = H::InboundProtocol;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = H::InboundOpenInfo;
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol, Self::InboundOpenInfo> {
        self.0.listen_protocol()
    }

    fn connection_keep_alive(&self) -> bool {
        false
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<
        ConnectionHandlerEvent<Self::OutboundProtocol, Self::OutboundOpenInfo, Self::ToBehaviour>,
    > {
        self.0.poll(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::ToBehaviour>> {
        self.0.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: Self::FromBehaviour) {
        self.0.on_behaviour_event(event);
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            Self::InboundProtocol,
            Self::OutboundProtocol,
            Self::InboundOpenInfo,
            Self::OutboundOpenInfo,
        >,
    ) {
        self.0.on_connection_event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_once_and_forgotten_when_twenty_others_came() {
        let address =
            |port: u16| -> Multiaddr { format!("/ip4/192.0.2.1/udp/{port}").parse().unwrap() };
        let mut observed = Observed::default();
        observed.saw(&address(1));
        observed.saw(&address(1));
        assert_eq!(observed.queue, [address(1)]);
        for port in 2..2 + TOLD_MAX as u16 {
            observed.saw(&address(port));
        }
        assert_eq!(observed.told.len(), TOLD_MAX);
        observed.queue.clear();
        observed.saw(&address(1));
        assert_eq!(observed.queue, [address(1)]);
    }
}
