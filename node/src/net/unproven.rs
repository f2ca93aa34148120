//! Bounds on connections over TCP or a relay that have proven nothing: how many inbound handshakes one transport may
//! have in progress, and what may be received before a peer has proven that it is a member. QUIC's are bounded by its
//! endpoint.
//!
//! yamux gives each of its streams a window of 256 KiB, so a stranger could fill 64 MiB of one connection. QUIC has
//! windows that are raised later, yamux has not: here a connection that has brought more than a gate needs ends.

use crate::descriptors;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::io::{AsyncRead, AsyncWrite, IoSlice, IoSliceMut};
use libp2p::Multiaddr;
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::{
    Boxed, DialOpts, ListenerId, Transport, TransportError, TransportEvent,
};
use libp2p::multiaddr::Protocol;
use murmurate_net::places::{self, Places};
use murmurate_protocol::SortedMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};

/// Inbound handshakes of one transport. One more ends the oldest of the network that has most.
const HANDSHAKES_MAX: usize = 128;

/// What connections may use that have not proven anything.
#[derive(Clone, Debug)]
pub(super) struct Unproven {
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

/// The network that a connection comes from; `None` behind a relay.
pub(super) type Network = Option<places::Network>;

pub(super) fn network_of(remote: &Multiaddr) -> Network {
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

/// Bytes before the proof: the handshakes of all layers, two messages at the gate, and pings. They have
/// fewer than 16 KiB.
const UNPROVEN_BYTES: usize = 32 << 10;

/// The mark of a connection that may bring any number of bytes.
const PROVEN: usize = usize::MAX;

/// The connections whose peers have not proven anything, by the address of the other end.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowances(Arc<Mutex<SortedMap<Multiaddr, Vec<Weak<AtomicUsize>>>>>);

impl Allowances {
    /// Limits the bytes that a new connection may bring before the proof.
    pub(super) fn limit<S>(&self, inner: S, point: &ConnectedPoint) -> Limited<S> {
        let left = Arc::new(AtomicUsize::new(UNPROVEN_BYTES));
        // Each change is complete before the lock is released.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Connections that ended, or passed long ago.
        all.retain(|_, open| {
            open.retain(|left| left.strong_count() > 0);
            !open.is_empty()
        });
        let open = all.entry(point.get_remote_address().clone()).or_default();
        open.push(Arc::downgrade(&left));
        Limited { inner, left }
    }

    /// The peer at this address has proven that it is a member.
    pub(super) fn lift(&self, remote: &Multiaddr) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for left in all.remove(remote).into_iter().flatten() {
            if let Some(left) = left.upgrade() {
                left.store(PROVEN, Ordering::Relaxed);
            }
        }
    }
}

/// A connection with a limit on the received bytes.
#[derive(Debug)]
pub(super) struct Limited<S> {
    inner: S,
    left: Arc<AtomicUsize>,
}

impl<S> Limited<S> {
    /// How many bytes may be read now.
    fn most(&self) -> io::Result<usize> {
        match self.left.load(Ordering::Relaxed) {
            0 => Err(io::Error::other(
                "more bytes than a peer needs to prove that it is a member",
            )),
            left => Ok(left),
        }
    }

    /// Counts bytes. The limit may have been lifted since they were asked for.
    fn count(&self, read: usize) {
        let took = |left| (left != PROVEN).then(|| usize::saturating_sub(left, read));
        // An error says that there is no limit any more.
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, took);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let most = buffer.len().min(self.most()?);
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buffer[..most]))?;
        self.count(read);
        Poll::Ready(Ok(read))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
            Some(first) => self.poll_read(cx, first),
            None => Poll::Ready(Ok(0)),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::AsyncReadExt;
    use futures::io::Cursor;

    fn from(port: u16) -> ConnectedPoint {
        ConnectedPoint::Listener {
            local_addr: "/ip4/10.0.0.1/tcp/1".parse().unwrap(),
            send_back_addr: format!("/ip4/10.0.0.2/tcp/{port}").parse().unwrap(),
        }
    }

    #[tokio::test]
    async fn a_stranger_brings_little_and_a_member_any_number_of_bytes() {
        let all = Allowances::default();
        let bytes = vec![7; UNPROVEN_BYTES + 1];
        let mut stranger = all.limit(Cursor::new(bytes.clone()), &from(1));
        let mut member = all.limit(Cursor::new(bytes.clone()), &from(2));
        let mut first = vec![0; 1000];
        member.read_exact(&mut first).await.unwrap();
        all.lift(from(2).get_remote_address());
        let mut rest = Vec::new();
        member.read_to_end(&mut rest).await.unwrap();
        assert_eq!(first.len() + rest.len(), bytes.len());
        let mut read = Vec::new();
        assert!(stranger.read_to_end(&mut read).await.is_err());
        assert_eq!(read.len(), UNPROVEN_BYTES);
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let all = Allowances::default();
        for port in 1..100 {
            drop(all.limit((), &from(port)));
        }
        assert_eq!(all.0.lock().unwrap().len(), 1);
    }
}
