//! State that the handles and tasks of an endpoint share.

use crate::places::Places;
use crate::quic::{Admission, Arrivals, BulkTls, Config, Kind};
use crate::tcp::ALPN;
use crate::tcp::connection::Connection;
use crate::tcp::error::Error;
use crate::tcp::holds::{Hold, Holds};
use crate::tcp::offer::Token;
use crate::tcp::tokens::Tokens;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Connections that may wait to be accepted by [`Endpoint::accept`](super::Endpoint::accept).
const QUEUE_MAX: usize = 64;

/// State that the handles and tasks of an endpoint share.
pub(super) struct Shared {
    pub(super) tls: BulkTls,
    pub(super) handshake_timeout: Duration,
    pub(super) patience: Duration,
    pub(super) handshakes: Arc<Places>,
    pub(super) arrivals: Arrivals,
    pub(super) inbound: mpsc::Sender<Connection>,
    pub(super) inbox: tokio::sync::Mutex<mpsc::Receiver<Connection>>,
    pub(super) holds: Arc<Holds>,
    admission: Arc<dyn Admission>,
    tokens: Mutex<Tokens>,
    listening: Mutex<Vec<(SocketAddr, AbortHandle)>>,
}

impl Shared {
    pub(super) fn new(
        config: &Config,
        identity: &Keypair,
        admission: Arc<dyn Admission>,
    ) -> Result<Self, Error> {
        let limits = config.limits;
        let (inbound, inbox) = mpsc::channel(QUEUE_MAX);
        let (per_second, burst) = (limits.attempts_per_second, limits.attempts_burst);
        Ok(Self {
            tls: BulkTls::new(config, identity, ALPN)?,
            handshake_timeout: config.handshake_timeout,
            patience: config.idle_timeout,
            handshakes: Places::new(limits.handshakes_max),
            arrivals: Arrivals::new(per_second, burst, Instant::now()),
            inbound,
            inbox: tokio::sync::Mutex::new(inbox),
            holds: Arc::default(),
            admission,
            tokens: Mutex::default(),
            listening: Mutex::default(),
        })
    }

    pub(super) fn tokens(&self) -> MutexGuard<'_, Tokens> {
        // Each change is complete before the lock is released.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ports that accept connections, with their tasks.
    pub(super) fn listening(&self) -> MutexGuard<'_, Vec<(SocketAddr, AbortHandle)>> {
        // Each change is one push or one drain.
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more connection; `None` if the peer may have no more.
    pub(super) fn hold(&self, peer: PeerId) -> Option<Hold> {
        let admitted = self.admission.admit(&peer, Kind::Bulk);
        admitted.then(|| self.holds.take(peer)).flatten()
    }

    pub(super) fn token_is_good(&self, peer: &PeerId, token: &Token) -> bool {
        self.tokens().allows(peer, token, Instant::now())
    }

    /// Connects from the address at which we listen, because routers and firewalls identify a
    /// machine by it.
    pub(super) async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = match to {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        let same = |at: &&SocketAddr| {
            at.is_ipv4() == to.is_ipv4()
                && !at.ip().is_unspecified()
                && at.ip().is_loopback() == to.ip().is_loopback()
        };
        let ours: Vec<SocketAddr> = self.listening().iter().map(|(at, _)| *at).collect();
        if let Some(at) = ours.iter().find(same) {
            socket.bind(SocketAddr::new(at.ip(), 0))?;
        }
        socket.connect(to).await
    }
}
