//! Bounds on inbound connections of one transport whose handshake is in progress. QUIC's are bounded
//! by its endpoint.

use crate::descriptors;
use crate::net::allowance::Allowances;
use crate::net::gate::network_of;
use futures::FutureExt;
use futures::future::BoxFuture;
use libp2p::Multiaddr;
use libp2p::core::transport::{
    Boxed, DialOpts, ListenerId, Transport, TransportError, TransportEvent,
};
use murmurate_net::places::Places;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Inbound handshakes of one transport. One more ends the oldest of the network that has most.
const HANDSHAKES_MAX: usize = 128;

/// What connections may use that have not proven anything.
#[derive(Clone, Debug)]
pub(super) struct Unproven {
    /// What they may bring.
    pub(super) allowances: Allowances,
    /// How many they may be.
    pub(super) places: descriptors::Places,
}

impl Unproven {
    /// No connection is there yet.
    ///
    /// # Errors
    /// If the system does not let this process open enough sockets.
    pub(super) fn new() -> Result<Self, descriptors::TooFew> {
        Ok(Self {
            allowances: Allowances::default(),
            places: descriptors::Places::take()?,
        })
    }
}

/// A transport with a bounded number of inbound handshakes.
pub(super) struct Bounded<O> {
    inner: Boxed<O>,
    places: Arc<Places>,
}

impl<O> Bounded<O> {
    pub(super) fn new(inner: Boxed<O>, places: descriptors::Places) -> Self {
        Self {
            inner,
            places: Places::new(places.of(HANDSHAKES_MAX)),
        }
    }
}

impl<O: Send + 'static> Transport for Bounded<O> {
    type Output = O;
    type Error = io::Error;
    type ListenerUpgrade = BoxFuture<'static, io::Result<O>>;
    type Dial = <Boxed<O> as Transport>::Dial;

    fn listen_on(
        &mut self,
        id: ListenerId,
        address: Multiaddr,
    ) -> Result<(), TransportError<io::Error>> {
        self.inner.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.inner.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<io::Error>> {
        self.inner.dial(address, options)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        let event = std::task::ready!(Pin::new(&mut self.inner).poll(cx));
        let from = match &event {
            TransportEvent::Incoming { send_back_addr, .. } => network_of(send_back_addr),
            _ => None,
        };
        Poll::Ready(event.map_upgrade(|upgrade| {
            let place = self.places.take(from);
            let crowded = || io::Error::other("too many handshakes are in progress");
            async move { place.hold(upgrade).await.ok_or_else(crowded)? }.boxed()
        }))
    }
}
