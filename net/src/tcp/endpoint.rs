//! The handle to a daemon's bulk connections over TCP.

use crate::mux::{Session, Volume};
use crate::places::Places;
use crate::quic::{Admission, Arrivals, BulkTls, Config, Kind};
use crate::tcp::accept;
use crate::tcp::connection::Connection;
use crate::tcp::error::Error;
use crate::tcp::offer::{Offer, Token};
use crate::tcp::tokens::Tokens;
use crate::tcp::{ALPN, dial};
use libp2p::PeerId;
use libp2p::identity::Keypair;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Connections of one peer: one, and one that replaces it.
const PER_PEER_MAX: usize = 2;

/// Connections that may wait to be accepted by [`Endpoint::accept`].
const QUEUE_MAX: usize = 64;

/// Connections that the system holds until they are accepted.
const BACKLOG: i32 = 128;

/// The sessions of one peer, and what its closed ones carried.
#[derive(Debug, Default)]
struct Held {
    sessions: BTreeMap<u64, Option<Session>>,
    past: Volume,
}

/// What the handles and tasks of an endpoint share.
pub(super) struct Shared {
    pub(super) tls: BulkTls,
    pub(super) handshake_timeout: Duration,
    pub(super) patience: Duration,
    pub(super) handshakes: Arc<Places>,
    pub(super) arrivals: Arrivals,
    pub(super) inbound: mpsc::Sender<Connection>,
    inbox: tokio::sync::Mutex<mpsc::Receiver<Connection>>,
    admission: Arc<dyn Admission>,
    tokens: Mutex<Tokens>,
    held: Mutex<BTreeMap<PeerId, Held>>,
    /// Bytes of connections that have ended.
    gone: Mutex<Volume>,
    next: std::sync::atomic::AtomicU64,
    listening: Mutex<Vec<(SocketAddr, AbortHandle)>>,
}

/// A place among the connections of a peer. Dropping it frees the place.
pub(super) struct Hold {
    shared: Arc<Shared>,
    peer: PeerId,
    id: u64,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl Hold {
    pub(super) fn peer(&self) -> PeerId {
        self.peer
    }

    /// The session whose bytes count for the peer.
    pub(super) fn carries(&self, session: &Session) {
        let mut held = self.shared.held();
        let slot = held.get_mut(&self.peer);
        if let Some(slot) = slot.and_then(|held| held.sessions.get_mut(&self.id)) {
            *slot = Some(session.clone());
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut all = self.shared.held();
        let Some(held) = all.get_mut(&self.peer) else {
            return;
        };
        let session = held.sessions.remove(&self.id).flatten();
        if let Some(session) = &session {
            held.past = sum(held.past, session.volume());
            self.shared.is_gone(session);
        }
        drop(all);
        // The last handle of a session ends it, which wakes others: outside the lock.
        drop(session);
    }
}

fn sum(a: Volume, b: Volume) -> Volume {
    Volume {
        sent: a.sent + b.sent,
        received: a.received + b.received,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete before the lock is released.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, BTreeMap<PeerId, Held>> {
        lock(&self.held)
    }

    /// Takes a place for one more connection; `None` if the peer may have no more.
    pub(super) fn hold(self: &Arc<Self>, peer: PeerId) -> Option<Hold> {
        if !self.admission.admit(&peer, Kind::Bulk) {
            return None;
        }
        let mut all = self.held();
        let held = all.entry(peer).or_default();
        if held.sessions.len() >= PER_PEER_MAX {
            return None;
        }
        let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        held.sessions.insert(id, None);
        drop(all);
        let shared = Arc::clone(self);
        Some(Hold { shared, peer, id })
    }

    fn is_gone(&self, session: &Session) {
        let mut gone = lock(&self.gone);
        *gone = sum(*gone, session.volume());
    }

    /// Connects from the address at which we listen, because routers and firewalls identify a
    /// machine by it.
    pub(super) async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = match to {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        let ours: Vec<SocketAddr> = lock(&self.listening).iter().map(|(at, _)| *at).collect();
        let same = |at: &&SocketAddr| {
            at.is_ipv4() == to.is_ipv4()
                && !at.ip().is_unspecified()
                && at.ip().is_loopback() == to.ip().is_loopback()
        };
        if let Some(at) = ours.iter().find(same) {
            socket.bind(SocketAddr::new(at.ip(), 0))?;
        }
        socket.connect(to).await
    }

    pub(super) fn token_is_good(&self, peer: &PeerId, token: &Token) -> bool {
        lock(&self.tokens).allows(peer, token, Instant::now())
    }
}

/// One daemon's endpoint of bulk connections over TCP. Clones share it. When all are dropped it
/// accepts no more connections.
#[derive(Clone)]
pub struct Endpoint(Arc<Owner>);

struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        for (_, task) in lock(&self.0.listening).drain(..) {
            task.abort();
        }
    }
}

impl Endpoint {
    /// Creates an endpoint for an identity. No port is open yet. Of the settings it uses the
    /// ciphers, the timeouts and the bounds of handshakes.
    ///
    /// # Errors
    /// [`Error::Tls`] if the identity cannot be used.
    pub fn new(
        config: &Config,
        identity: &Keypair,
        admission: Arc<dyn Admission>,
    ) -> Result<Self, Error> {
        let limits = config.limits;
        let (inbound, inbox) = mpsc::channel(QUEUE_MAX);
        let (per_second, burst) = (limits.attempts_per_second, limits.attempts_burst);
        let shared = Shared {
            tls: BulkTls::new(config, identity, ALPN)?,
            handshake_timeout: config.handshake_timeout,
            patience: config.idle_timeout,
            handshakes: Places::new(limits.handshakes_max),
            arrivals: Arrivals::new(per_second, burst, Instant::now()),
            inbound,
            inbox: tokio::sync::Mutex::new(inbox),
            admission,
            tokens: Mutex::default(),
            held: Mutex::default(),
            gone: Mutex::default(),
            next: std::sync::atomic::AtomicU64::new(0),
            listening: Mutex::default(),
        };
        Ok(Self(Arc::new(Owner(Arc::new(shared)))))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// Opens a port and returns its address. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Listen`] if the port is taken or forbidden.
    pub fn listen(&self, addr: SocketAddr) -> Result<SocketAddr, Error> {
        let failed = |source: io::Error| Error::Listen {
            addr,
            source: Arc::new(source),
        };
        let listener = bind(addr).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let task = tokio::spawn(accept::all(Arc::downgrade(self.shared()), listener));
        lock(&self.shared().listening).push((local, task.abort_handle()));
        Ok(local)
    }

    /// The addresses at which connections are accepted.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        let listening = lock(&self.shared().listening);
        listening.iter().map(|(addr, _)| *addr).collect()
    }

    /// An offer for a peer, whose address is of the same family as `near`, our end of its
    /// connection. `None` if no port is open there.
    #[must_use]
    pub fn offer(&self, peer: PeerId, remote: SocketAddr) -> Option<Offer> {
        let family = remote.ip().to_canonical().is_ipv4();
        let listening = self.listening();
        let mut fitting = listening.iter().filter(|addr| addr.is_ipv4() == family);
        let port = fitting.next()?.port();
        let random = self.shared().tls.random();
        let token = lock(&self.shared().tokens).give(peer, Instant::now(), random)?;
        Some(Offer { port, token })
    }

    /// Ends the peer's connections and makes its token worthless.
    pub fn forget(&self, peer: &PeerId) {
        lock(&self.shared().tokens).revoke(peer);
        let held = self.shared().held().remove(peer);
        for session in held
            .into_iter()
            .flat_map(|held| held.sessions.into_values())
            .flatten()
        {
            session.close();
            self.shared().is_gone(&session);
        }
    }

    /// Bytes of frames with all peers since the start.
    #[must_use]
    pub fn volume(&self) -> Volume {
        let open = self.shared().held();
        let sessions = open
            .values()
            .flat_map(|held| held.sessions.values())
            .flatten();
        let open = sessions.map(Session::volume).fold(Volume::default(), sum);
        sum(open, *lock(&self.shared().gone))
    }

    /// Accepts the offer of a peer whose address is `remote`, whatever its port is.
    ///
    /// # Errors
    /// If the port cannot be reached, another peer answers, or the handshake does not end in time.
    pub async fn dial(
        &self,
        peer: PeerId,
        remote: SocketAddr,
        offer: Offer,
    ) -> Result<Connection, Error> {
        dial::dial(self.shared(), peer, remote, offer).await
    }

    /// Waits for the next connection of a peer that accepted our offer; `None` if the endpoint is
    /// shut down.
    pub async fn accept(&self) -> Option<Connection> {
        self.shared().inbox.lock().await.recv().await
    }

    /// Bytes of frames with each peer since it was linked.
    #[must_use]
    pub fn volumes(&self) -> BTreeMap<PeerId, Volume> {
        let held = self.shared().held();
        let total = |held: &Held| {
            let open = held.sessions.values().flatten().map(Session::volume);
            open.fold(held.past, sum)
        };
        held.iter()
            .map(|(peer, held)| (*peer, total(held)))
            .collect()
    }
}

/// Opens a port for one family of addresses.
fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A daemon that restarts finds its port free.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}
