//! State that an endpoint's handles, tasks and transport share: settings, ports and connections.

use crate::places::Places;
use crate::quic::admission::{Admission, Kind};
use crate::quic::arrivals::Arrivals;
use crate::quic::bulk::BulkConnection;
use crate::quic::close::CloseCode;
use crate::quic::config::Config;
use crate::quic::counts::Counts;
use crate::quic::error::Error;
use crate::quic::muxer::Arrival;
use crate::quic::port::{Family, Port};
use crate::quic::punch::Punches;
use crate::quic::registry::{Entry, Hold, Registry};
use crate::quic::stats::Traffic;
use crate::quic::tls::{Tls, remote_peer_id};
use libp2p::PeerId;
use libp2p::core::transport::ListenerId;
use libp2p::identity::Keypair;
use quinn::{EndpointConfig, ServerConfig, VarInt};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

pub(super) struct Shared {
    pub(super) me: PeerId,
    pub(super) config: Config,
    pub(super) tls: Tls,
    pub(super) counts: Counts,
    pub(super) registry: Arc<Registry>,
    pub(super) arrivals: Arrivals,
    /// One place for each inbound handshake.
    pub(super) handshakes: Arc<Places>,
    pub(super) punches: Arc<Punches>,
    /// Control connections for the transport.
    pub(super) inbound: mpsc::Sender<Arrival>,
    /// Bulk connections for the task that accepts them.
    pub(super) bulk: mpsc::Sender<BulkConnection>,
    pub(super) bulk_inbox: tokio::sync::Mutex<mpsc::Receiver<BulkConnection>>,
    /// True after the endpoint was shut down.
    pub(super) closed: watch::Sender<bool>,
    admission: Arc<dyn Admission>,
    endpoint: EndpointConfig,
    server: ServerConfig,
    ports: Mutex<Ports>,
    /// Bytes of first flights that quinn counts and that its sockets have kept back.
    kept_back: Arc<AtomicU64>,
}

#[derive(Default)]
struct Ports {
    /// Ports that accept connections, in the order in which they were opened.
    listening: Vec<Arc<Port>>,
    /// Ports for outbound connections while nothing listens, one for each family.
    dialing: BTreeMap<Family, Arc<Port>>,
}

impl Shared {
    pub(super) fn new(
        config: Config,
        identity: &Keypair,
        admission: Arc<dyn Admission>,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Arrival>), Error> {
        let tls = Tls::new(identity, config.cipher, config.post_quantum, config.key_log)?;
        let limits = config.limits;
        let (inbound, arrived) = mpsc::channel(limits.inbound_queue.max(1));
        let (bulk, bulk_inbox) = mpsc::channel(limits.bulk_queue.max(1));
        let shared = Self {
            me: identity.public().to_peer_id(),
            endpoint: config.endpoint(&tls, identity)?,
            server: config.server(&tls)?,
            counts: Counts::default(),
            registry: Registry::new(limits),
            arrivals: Arrivals::new(
                limits.attempts_per_second,
                limits.attempts_burst,
                Instant::now(),
            ),
            handshakes: Places::new(limits.handshakes_max),
            punches: Punches::new(limits.punches_max),
            inbound,
            bulk,
            bulk_inbox: tokio::sync::Mutex::new(bulk_inbox),
            closed: watch::Sender::new(false),
            admission,
            ports: Mutex::default(),
            kept_back: Arc::default(),
            config,
            tls,
        };
        Ok((Arc::new(shared), arrived))
    }

    /// UDP payload of all connections since the start.
    pub(super) fn traffic(&self) -> Traffic {
        let mut all = self.registry.traffic();
        all.sent = all
            .sent
            .saturating_sub(self.kept_back.load(Ordering::Relaxed));
        all
    }

    fn ports(&self) -> MutexGuard<'_, Ports> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bind(&self, id: ListenerId, addr: SocketAddr) -> Result<Arc<Port>, Error> {
        self.open()?;
        let server = Some((id, self.server.clone()));
        let buffer = self.config.socket_buffer;
        let port = Port::bind(
            addr,
            buffer,
            self.endpoint.clone(),
            server,
            Arc::clone(&self.kept_back),
        )?;
        Ok(Arc::new(port))
    }

    /// Registers a port at which a listener accepts connections. New dials use it; existing
    /// connections keep their port.
    pub(super) fn listens_at(&self, port: Arc<Port>) {
        let mut ports = self.ports();
        ports.dialing.remove(&Family::of(port.local));
        ports.listening.push(port);
    }

    /// Ends a listener. Returns false if there is none with this id.
    pub(super) fn unlisten(&self, id: ListenerId) -> bool {
        let mut ports = self.ports();
        let listening = &mut ports.listening;
        let found = listening.iter().position(|port| port.listener == Some(id));
        let port = found.map(|at| listening.remove(at));
        drop(ports);
        port.inspect(|port| port.stop()).is_some()
    }

    /// The addresses of the sockets that accept connections.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.ports().listening.iter().map(|p| p.local).collect()
    }

    /// The listening port from which a packet to `to` is sent: the one opened first, so that all
    /// peers see the same NAT mapping.
    pub(super) fn listening_port(&self, to: SocketAddr) -> Option<Arc<Port>> {
        let ports = self.ports();
        let mut listening = ports.listening.iter();
        listening.find(|port| port.reaches(to)).cloned()
    }

    pub(super) fn dialing_port(&self, to: SocketAddr, reuse: bool) -> Result<Arc<Port>, Error> {
        self.open()?;
        let family = Family::of(to);
        if reuse {
            if let Some(port) = self.listening_port(to) {
                return Ok(port);
            }
            if let Some(port) = self.ports().dialing.get(&family) {
                return Ok(Arc::clone(port));
            }
        }
        let buffer = self.config.socket_buffer;
        // Another port with the same address, because routers and firewalls identify a machine by
        // it.
        let listening = self.listening_port(to).map(|port| port.local.ip());
        let from = listening.map_or_else(|| family.any(), |ip| (ip, 0).into());
        let port = Arc::new(Port::bind(
            from,
            buffer,
            self.endpoint.clone(),
            None,
            Arc::clone(&self.kept_back),
        )?);
        if reuse {
            self.ports().dialing.insert(family, Arc::clone(&port));
        }
        Ok(port)
    }

    /// quinn's settings for a connection from `remote` that was announced as one of this kind.
    pub(super) fn server_for(&self, kind: Kind, remote: SocketAddr) -> Result<ServerConfig, Error> {
        let payload = self.config.payload(kind, Some(remote));
        let mut server = self.server.clone();
        server.transport_config(Arc::new(self.config.transport(Kind::Control, payload)?));
        Ok(server)
    }

    pub(super) fn take_ports(&self) -> Vec<Arc<Port>> {
        let Ports { listening, dialing } = std::mem::take(&mut *self.ports());
        listening.into_iter().chain(dialing.into_values()).collect()
    }

    fn open(&self) -> Result<(), Error> {
        if *self.closed.borrow() {
            return Err(Error::Closed);
        }
        Ok(())
    }

    pub(super) fn may(&self, peer: PeerId, kind: Kind) -> Result<(), Error> {
        self.open()?;
        let alone = self.config.bulk_beside_control
            && kind == Kind::Bulk
            && self.registry.oldest(peer, Kind::Control).is_none();
        if alone || !self.admission.admit(&peer, kind) {
            return Err(Error::Denied(peer));
        }
        self.registry.room(peer, kind)
    }

    /// Registers a connection after its handshake, or closes it with a reason.
    pub(super) fn settle(
        &self,
        connection: &quinn::Connection,
        kind: Kind,
        port: Weak<Port>,
    ) -> Result<(PeerId, Hold), Error> {
        // Who completes a handshake receives at its address.
        if let Some(port) = port.upgrade() {
            port.flights.prove(connection.remote_address());
        }
        let entered = remote_peer_id(connection).and_then(|peer| {
            self.may(peer, kind)?;
            let connection = connection.clone();
            let hold = self.registry.enter(Entry {
                peer,
                kind,
                connection,
                port,
            })?;
            Ok((peer, hold))
        });
        let code = match &entered {
            Ok(_) => {
                self.widen(connection, kind);
                return entered;
            }
            Err(Error::Denied(_)) => CloseCode::Denied,
            Err(Error::Closed) => CloseCode::Shutdown,
            Err(Error::NoIdentity) => CloseCode::Violation,
            Err(_) => CloseCode::TooMany,
        };
        code.close(connection);
        entered
    }

    /// Raises the bounds of a peer's control connections from what anyone may use to what their kind may.
    pub(super) fn prove(&self, peer: PeerId) {
        if self.config.unproven.is_none() {
            return;
        }
        let entries = self.registry.entries().into_iter();
        for entry in entries.filter(|entry| entry.peer == peer && entry.kind == Kind::Control) {
            let (bi, _) = self.config.streams(Kind::Control);
            let connection = &entry.connection;
            connection.set_max_concurrent_bi_streams(VarInt::from_u32(bi));
            if let Ok(window) = VarInt::from_u64(self.config.windows.control) {
                connection.set_receive_window(window);
            }
        }
    }

    /// Raises the bounds of an inbound connection, which began with those of a control connection,
    /// to those of its kind.
    fn widen(&self, connection: &quinn::Connection, kind: Kind) {
        if kind != Kind::Bulk || connection.side() == quinn::Side::Client {
            return;
        }
        let (bi, uni) = self.config.streams(kind);
        connection.set_max_concurrent_bi_streams(VarInt::from_u32(bi));
        connection.set_max_concurrent_uni_streams(VarInt::from_u32(uni));
        connection.set_send_window(self.config.windows.send);
        if let Ok(window) = VarInt::from_u64(self.config.windows.bulk) {
            connection.set_receive_window(window);
        }
    }
}
