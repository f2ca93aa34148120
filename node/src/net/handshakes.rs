//! Bounds on connections whose handshake is in progress.
//!
//! Anyone who opens connections and says nothing on them holds a place until the handshake's time is
//! over. So each transport has its own places, and one network gets only some of them: strangers
//! that fill one transport leave the other one to members, and those of one network leave room for
//! the others.

use crate::net::gate::{Network, network_of};
use libp2p::Multiaddr;
use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::identity::PeerId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, ListenFailure, NetworkBehaviour, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm, dummy,
};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::task::{Context, Poll};

/// Inbound handshakes of one transport.
const OF_TRANSPORT: usize = 64;

/// Inbound handshakes of one transport and one network.
const OF_NETWORK: usize = 48;

/// Why an inbound connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many handshakes are in progress")
    }
}

impl std::error::Error for TooMany {}

/// The inbound handshakes that are in progress.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Whether it is TCP, and the network that it comes from.
    open: BTreeMap<ConnectionId, (bool, Network)>,
}

impl Handshakes {
    fn begin(
        &mut self,
        id: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), TooMany> {
        let tcp = local.iter().any(|part| matches!(part, Protocol::Tcp(_)));
        let from = network_of(remote);
        let same = || self.open.values().filter(|(of, _)| *of == tcp);
        let near = same().filter(|(_, of)| *of == from).count();
        if same().count() >= OF_TRANSPORT || near >= OF_NETWORK {
            return Err(TooMany);
        }
        self.open.insert(id, (tcp, from));
        Ok(())
    }

    fn end(&mut self, id: ConnectionId) {
        self.open.remove(&id);
    }
}

impl NetworkBehaviour for Handshakes {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.begin(id, local, remote).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.end(id);
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

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ListenFailure(ListenFailure { connection_id, .. }) = event {
            self.end(connection_id);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_connections_leave_room_for_others() {
        let mut handshakes = Handshakes::default();
        let tcp: Multiaddr = "/ip4/10.0.0.1/tcp/4001".parse().unwrap();
        let udp: Multiaddr = "/ip4/10.0.0.1/udp/4001/quic-v1".parse().unwrap();
        let stranger: Multiaddr = "/ip4/10.9.9.9/tcp/5".parse().unwrap();
        let friend: Multiaddr = "/ip4/10.1.1.1/tcp/5".parse().unwrap();
        let id = ConnectionId::new_unchecked;
        for number in 0..OF_NETWORK {
            assert_eq!(handshakes.begin(id(number), &tcp, &stranger), Ok(()));
        }
        assert_eq!(handshakes.begin(id(900), &tcp, &stranger), Err(TooMany));
        // Another network, and the same one over the other transport.
        assert_eq!(handshakes.begin(id(901), &tcp, &friend), Ok(()));
        assert_eq!(handshakes.begin(id(902), &udp, &stranger), Ok(()));
        handshakes.end(id(0));
        assert_eq!(handshakes.begin(id(903), &tcp, &stranger), Ok(()));
        // Many networks together are bounded, too.
        let more = (0..OF_TRANSPORT).filter(|number| {
            let from = format!("/ip4/10.7.{number}.1/tcp/5").parse().unwrap();
            handshakes.begin(id(1000 + number), &tcp, &from).is_ok()
        });
        assert_eq!(more.count(), OF_TRANSPORT - OF_NETWORK - 1);
    }
}
