//! The handle to a daemon's bulk connections over TCP.

use crate::mux::Volume;
use crate::quic::{Admission, Config};
use crate::tcp::connection::Connection;
use crate::tcp::error::Error;
use crate::tcp::offer::Offer;
use crate::tcp::shared::Shared;
use crate::tcp::{accept, dial};
use libp2p::PeerId;
use libp2p::identity::Keypair;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// Connections that the system holds until they are accepted.
const BACKLOG: i32 = 128;

/// One daemon's endpoint of bulk connections over TCP. Clones share it. When all are dropped it
/// accepts no more connections.
#[derive(Clone)]
pub struct Endpoint(Arc<Owner>);

struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        for (_, task) in self.0.listening().drain(..) {
            task.abort();
        }
    }
}

impl Endpoint {
    /// Creates an endpoint for an identity. No port is open yet. Of the settings it uses the
    /// ciphers, the timeouts and the bounds of handshakes.
    ///
    /// # Errors
    /// [`Error::Tls`] or [`Error::Setting`] if the identity cannot be used.
    pub fn new(
        config: &Config,
        identity: &Keypair,
        admission: Arc<dyn Admission>,
    ) -> Result<Self, Error> {
        let shared = Shared::new(config, identity, admission)?;
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
        let entry = (local, task.abort_handle());
        self.shared().listening().push(entry);
        Ok(local)
    }

    /// The addresses at which connections are accepted.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        let listening = self.shared().listening();
        listening.iter().map(|(addr, _)| *addr).collect()
    }

    /// A port is open for addresses of the family of this one.
    #[must_use]
    pub fn is_listening_for(&self, remote: IpAddr) -> bool {
        self.port_for(remote).is_some()
    }

    fn port_for(&self, remote: IpAddr) -> Option<u16> {
        let v4 = remote.to_canonical().is_ipv4();
        let listening = self.listening();
        Some(listening.iter().find(|at| at.is_ipv4() == v4)?.port())
    }

    /// An offer for a peer at an address. `None` if no port is open for addresses of that family.
    #[must_use]
    pub fn offer(&self, peer: PeerId, remote: SocketAddr) -> Option<Offer> {
        let port = self.port_for(remote.ip())?;
        let random = self.shared().tls.random();
        let token = self.shared().tokens().give(peer, Instant::now(), random)?;
        Some(Offer { port, token })
    }

    /// Ends the peer's connections and makes its token worthless.
    pub fn forget(&self, peer: &PeerId) {
        self.shared().tokens().revoke(peer);
        self.shared().holds.forget(peer);
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
        self.shared().holds.volumes()
    }

    /// Bytes of frames with all peers since the start.
    #[must_use]
    pub fn volume(&self) -> Volume {
        self.shared().holds.volume()
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
