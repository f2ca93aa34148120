//! Errors of bulk connections over TCP.

use crate::quic::Mismatch;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no connection over TCP to a peer. Clones share the system's error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The port cannot be opened.
    #[error("cannot listen on tcp {addr}: {source}")]
    Listen {
        /// The local address.
        addr: SocketAddr,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The remote's port does not answer: closed, or filtered on the way.
    #[error("tcp {addr} cannot be reached ({source}): closed, or blocked by a firewall")]
    Unreachable {
        /// The remote address.
        addr: SocketAddr,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// TLS failed: the remote is not the expected peer, or speaks something else.
    #[error("no TLS with tcp {addr}: {source}")]
    Handshake {
        /// The remote address.
        addr: SocketAddr,
        /// The error of TLS.
        source: Arc<io::Error>,
    },
    /// Another peer than the expected one answers.
    #[error("{} answers on tcp where {} was expected", .0.found, .0.expected)]
    WrongPeer(Box<Mismatch>),
    /// The handshake did not end in time.
    #[error("no handshake with tcp {addr} within {} ms", .after.as_millis())]
    Timeout {
        /// The remote address.
        addr: SocketAddr,
        /// The time allowed.
        after: Duration,
    },
    /// The remote did not accept the token: it is used, too old, or another peer's.
    #[error("the remote did not accept the token of its offer")]
    Token,
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The identity or the settings cannot be used.
    #[error("cannot set up bulk connections over TCP: {0}")]
    Setting(Arc<crate::quic::Error>),
    /// The endpoint is closed.
    #[error("the endpoint is shut down")]
    Closed,
}

impl From<crate::quic::Error> for Error {
    fn from(error: crate::quic::Error) -> Self {
        Self::Setting(Arc::new(error))
    }
}
