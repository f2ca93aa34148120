//! A bulk connection over TLS and TCP.

use crate::mux::{Session, Side, Volume};
use crate::tcp::holds::Hold;
use crate::tcp::info::Info;
use libp2p::PeerId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to a peer whose identity is proved. Clones refer to the same one, which ends when
/// they and its streams are dropped.
#[derive(Debug, Clone)]
pub struct Connection {
    session: Session,
    peer: PeerId,
    local: SocketAddr,
    remote: SocketAddr,
    _hold: Arc<Hold>,
}

/// The addresses of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

impl Connection {
    pub(super) fn start<C>(
        stream: C,
        side: Side,
        patience: Duration,
        ends: Ends,
        hold: Hold,
    ) -> Self
    where
        C: AsyncRead + AsyncWrite + Send + 'static,
    {
        let session = Session::start(stream, side, patience);
        hold.carries(&session);
        Self {
            session,
            peer: hold.peer(),
            local: ends.local,
            remote: ends.remote,
            _hold: Arc::new(hold),
        }
    }

    /// The peer at the other end.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The address of the other end.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    /// The streams.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Bytes of frames so far.
    #[must_use]
    pub fn volume(&self) -> Volume {
        self.session.volume()
    }

    /// The system's measurements; `None` where it does not tell, and after the end.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
        Info::of(self.local, self.remote)
    }
}
