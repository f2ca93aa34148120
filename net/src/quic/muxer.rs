//! A control connection as a libp2p stream muxer, and the events that bring one to the swarm.

use crate::quic::addr::{bare, multiaddr_of};
use crate::quic::close::CloseCode;
use crate::quic::error::Error;
use crate::quic::registry::Hold;
use crate::quic::stats::PathStats;
use crate::quic::stream::Stream;
use futures::future::{BoxFuture, Ready};
use futures::{FutureExt, ready};
use libp2p::PeerId;
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::core::transport::{ListenerId, TransportEvent};
use quinn::{ConnectionError, RecvStream, SendStream};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

type Opening = BoxFuture<'static, Result<(SendStream, RecvStream), ConnectionError>>;

/// A libp2p connection over QUIC. It closes when it and all its streams are dropped.
pub struct Muxer {
    connection: quinn::Connection,
    remote: SocketAddr,
    inbound: Option<Opening>,
    outbound: Option<Opening>,
    _hold: Hold,
}

impl Muxer {
    pub(super) fn new(connection: quinn::Connection, hold: Hold) -> Self {
        Self {
            remote: bare(connection.remote_address()),
            connection,
            inbound: None,
            outbound: None,
            _hold: hold,
        }
    }

    /// The connection's measurements.
    #[must_use]
    pub fn stats(&self) -> PathStats {
        PathStats::of(&self.connection)
    }

    /// The underlying quinn connection.
    #[must_use]
    pub fn quinn(&self) -> &quinn::Connection {
        &self.connection
    }
}

impl StreamMuxer for Muxer {
    type Substream = Stream;
    type Error = Error;

    fn poll_inbound(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, Self::Error>> {
        let this = self.get_mut();
        let inbound = this.inbound.get_or_insert_with(|| {
            let connection = this.connection.clone();
            async move { connection.accept_bi().await }.boxed()
        });
        let halves = ready!(inbound.poll_unpin(cx));
        this.inbound = None;
        Poll::Ready(Ok(Stream::new(halves?)))
    }

    fn poll_outbound(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, Self::Error>> {
        let this = self.get_mut();
        let outbound = this.outbound.get_or_insert_with(|| {
            let connection = this.connection.clone();
            async move { connection.open_bi().await }.boxed()
        });
        let halves = ready!(outbound.poll_unpin(cx));
        this.outbound = None;
        Poll::Ready(Ok(Stream::new(halves?)))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        CloseCode::Done.close(&self.connection);
        Poll::Ready(Ok(()))
    }

    /// Reports when the remote moved to another address.
    fn poll(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        let this = self.get_mut();
        let remote = bare(this.connection.remote_address());
        if remote == this.remote {
            return Poll::Pending;
        }
        this.remote = remote;
        Poll::Ready(Ok(StreamMuxerEvent::AddressChange(multiaddr_of(remote))))
    }
}

/// An event of a listener.
pub(super) enum Arrival {
    /// A control connection that is ready for use.
    Control {
        listener: ListenerId,
        local: SocketAddr,
        remote: SocketAddr,
        peer: PeerId,
        muxer: Box<Muxer>,
    },
    /// The listener's socket failed, or was shut down.
    Stopped { listener: ListenerId },
}

/// An inbound connection. Its handshake is complete before the swarm receives it.
pub type Upgrade = Ready<Result<(PeerId, Muxer), Error>>;

/// An event of the transport for the swarm.
pub(super) type Event = TransportEvent<Upgrade, Error>;
