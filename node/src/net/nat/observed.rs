//! Tells the swarm at which address others saw this daemon, without changing the port.
//!
//! If the observed port differs from the listening port, libp2p's identify reports the listening
//! port instead. Behind a router that assigns its own ports, such an address is useless: AutoNAT
//! would test it, and DCUtR would offer it, although no mapping exists for it.

use libp2p::Multiaddr;
use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::identity::PeerId;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::task::{Context, Poll};

/// Addresses that are remembered as told. The oldest is forgotten first. DCUtR keeps the same
/// number.
const TOLD_MAX: usize = 20;

/// Reports each address once.
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
