//! The handle to a daemon's QUIC: its ports, bulk connections and measurements.

use crate::congestion::{PathModel, path_model};
use crate::quic::addr::{QuicAddr, bare};
use crate::quic::admission::{Admission, Kind};
use crate::quic::buffers::SocketBuffers;
use crate::quic::bulk::BulkConnection;
use crate::quic::close::CloseCode;
use crate::quic::config::Config;
use crate::quic::counts::InboundCounts;
use crate::quic::error::{Error, Mismatch};
use crate::quic::inbound;
use crate::quic::muxer::Arrival;
use crate::quic::port::Port;
use crate::quic::shared::Shared;
use crate::quic::stats::{PathStats, Traffic};
use crate::quic::transport::Transport;
use crate::quic::verifier::Verifier;
use libp2p::core::transport::ListenerId;
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, PeerId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time::timeout;

/// One daemon's QUIC endpoint. Clones share it.
///
/// When all clones and the [`Transport`] are dropped, its ports accept no more connections.
/// Existing connections live until their owners drop them.
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
    buffers: SocketBuffers,
}

/// A connection with its measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkStats {
    /// The peer at the other end.
    pub peer: PeerId,
    /// The connection's purpose.
    pub kind: Kind,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// Measurements of the path.
    pub path: PathStats,
    /// The path model of the congestion controller; `None` for another controller than ours.
    pub model: Option<PathModel>,
}

impl Endpoint {
    /// Creates an endpoint for an identity, and the transport for its swarm. No port is bound yet;
    /// the swarm's `listen_on` or [`Endpoint::listen`] binds one.
    ///
    /// # Errors
    /// [`Error::Setting`] if a setting is out of bounds, [`Error::Certificate`] and [`Error::Tls`]
    /// if the identity cannot be used.
    pub fn new(
        config: Config,
        identity: &Keypair,
        admission: Arc<dyn Admission>,
    ) -> Result<(Self, Transport), Error> {
        let asked = config.socket_buffer;
        let buffers = SocketBuffers::probe(asked).unwrap_or(SocketBuffers {
            asked,
            receive: 0,
            send: 0,
        });
        let (shared, arrived) = Shared::new(config, identity, admission)?;
        let transport = Transport::new(Arc::clone(&shared), arrived);
        Ok((Self { shared, buffers }, transport))
    }

    /// This endpoint's own id.
    #[must_use]
    pub fn local_peer_id(&self) -> PeerId {
        self.shared.me
    }

    /// The socket buffers that this machine grants. Their [`cap`](SocketBuffers::cap) is a warning
    /// for the operator.
    #[must_use]
    pub fn buffers(&self) -> SocketBuffers {
        self.buffers
    }

    /// Listens without a swarm and returns the address with its port. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`Error::PortBusy`], [`Error::PortForbidden`], [`Error::NoSuchAddress`] or
    /// [`Error::Socket`].
    pub fn listen(&self, addr: SocketAddr) -> Result<SocketAddr, Error> {
        Ok(inbound::listen(&self.shared, ListenerId::next(), addr)?.local)
    }

    /// A peer has proven to the caller who it is: its control connections may use what
    /// [`Config`] gives them, and not only its `unproven`.
    pub fn prove(&self, peer: PeerId) {
        self.shared.prove(peer);
    }

    /// The addresses of the sockets that accept connections. Wildcard addresses stay as they are.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        self.shared.addresses()
    }

    /// Opens a bulk connection to a peer at an address. If the address contains `/p2p/`, it must
    /// name the same peer.
    ///
    /// The remote may still refuse after it knows our identity. Then the first use of the
    /// connection fails, and [`CloseCode::of`] gives the reason.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the remote does not support bulk connections (use a libp2p
    /// stream), [`Error::WrongPeer`], [`Error::HandshakeTimeout`] (blocked or gone), and those of
    /// the limits.
    pub async fn dial_bulk(&self, addr: &Multiaddr, peer: PeerId) -> Result<BulkConnection, Error> {
        let quic = QuicAddr::parse(addr).filter(QuicAddr::is_dialable);
        let quic = quic.ok_or_else(|| Error::Address(addr.clone()))?;
        if let Some(found) = quic.peer.filter(|named| *named != peer) {
            let expected = peer;
            let mismatch = Mismatch { expected, found };
            return Err(Error::WrongPeer(Box::new(mismatch)));
        }
        let port = self.shared.dialing_port(quic.socket, true)?;
        self.bulk(&port, quic.socket, peer).await
    }

    /// Opens a bulk connection beside the oldest control connection to a peer. It uses the same
    /// socket and address, and so the same NAT mappings and punched holes, whichever end dialled. A
    /// newer control connection may be a probe of AutoNAT from a port that does not listen.
    ///
    /// # Errors
    /// [`Error::NoPath`] without a control connection, otherwise as [`Endpoint::dial_bulk`].
    pub async fn dial_bulk_beside(&self, peer: PeerId) -> Result<BulkConnection, Error> {
        let beside = self.shared.registry.oldest(peer, Kind::Control);
        let beside = beside.ok_or(Error::NoPath(peer))?;
        let remote = bare(beside.connection.remote_address());
        let port = match beside.port.upgrade() {
            Some(port) => port,
            None => self.shared.dialing_port(remote, true)?,
        };
        // Keeping the handle would prevent the control connection from closing while we dial.
        drop(beside);
        self.bulk(&port, remote, peer).await
    }

    async fn bulk(
        &self,
        port: &Arc<Port>,
        addr: SocketAddr,
        peer: PeerId,
    ) -> Result<BulkConnection, Error> {
        let dialed = self.shared.dial(port, addr, Some(peer), Kind::Bulk).await?;
        let (peer, connection, hold) = dialed;
        Ok(BulkConnection::new(connection, peer, hold))
    }

    /// Waits for the next inbound bulk connection; `None` after the endpoint was shut down. At most
    /// [`Limits::bulk_queue`](super::Limits::bulk_queue) of them wait.
    pub async fn accept_bulk(&self) -> Option<BulkConnection> {
        let mut closed = self.shared.closed.subscribe();
        let next = async { self.shared.bulk_inbox.lock().await.recv().await };
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => None,
            bulk = next => bulk,
        }
    }

    /// All connections with their measurements, the oldest first.
    #[must_use]
    pub fn links(&self) -> Vec<LinkStats> {
        let entries = self.shared.registry.entries().into_iter();
        let links = entries.map(|entry| LinkStats {
            peer: entry.peer,
            kind: entry.kind,
            remote: bare(entry.connection.remote_address()),
            path: PathStats::of(&entry.connection),
            model: path_model(entry.connection.congestion_state()),
        });
        links.collect()
    }

    /// UDP payload of closed connections, for each peer that still has another one. Together with
    /// [`Endpoint::links`] it is all traffic with the peer since it was connected.
    #[must_use]
    pub fn past(&self) -> BTreeMap<PeerId, Traffic> {
        self.shared.registry.past()
    }

    /// UDP payload of all connections since the start.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.traffic()
    }

    /// Outcomes of inbound connections since the start.
    #[must_use]
    pub fn inbound(&self) -> InboundCounts {
        self.shared.counts.read()
    }

    /// Closes all connections to a peer, of both kinds.
    pub fn disconnect(&self, peer: PeerId, code: CloseCode) {
        let entries = self.shared.registry.entries();
        for entry in entries.iter().filter(|entry| entry.peer == peer) {
            code.close(&entry.connection);
        }
    }

    /// Closes everything, and waits until the remotes were told, at most for the duration of a
    /// handshake.
    pub async fn close(&self) {
        self.shared.closed.send_replace(true);
        let ports = self.shared.take_ports();
        for entry in self.shared.registry.entries() {
            CloseCode::Shutdown.close(&entry.connection);
        }
        let ends = ports.iter().map(|port| async {
            port.stop();
            port.quinn
                .close(CloseCode::Shutdown.code(), CloseCode::Shutdown.reason());
            if let Some(listener) = port.listener {
                // The transport may be gone; then there is no receiver.
                let _ = self
                    .shared
                    .inbound
                    .send(Arrival::Stopped { listener })
                    .await;
            }
            port.quinn.wait_idle().await;
        });
        // Remotes that were not told in time notice through the idle timeout.
        let wait = self.shared.config.handshake_timeout;
        let _ = timeout(wait, futures::future::join_all(ends)).await;
    }

    /// quinn's settings for an outbound connection, to compare with a bare quinn endpoint. Its
    /// packets are those of Ethernet.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn quinn_client(
        &self,
        kind: Kind,
        expected: Option<PeerId>,
    ) -> Result<quinn::ClientConfig, Error> {
        let verifier = Arc::new(Verifier::expecting(expected));
        let (config, tls) = (&self.shared.config, &self.shared.tls);
        config.client(tls, kind, verifier, None)
    }

    /// quinn's settings for the listening side, to compare with a bare quinn endpoint.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn quinn_server(&self) -> Result<quinn::ServerConfig, Error> {
        self.shared.config.server(&self.shared.tls)
    }
}
