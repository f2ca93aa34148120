//! Errors of an endpoint. `close` has the reasons for which a remote closed a connection.

use libp2p::{Multiaddr, PeerId};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// An error of an endpoint or its transport.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address does not belong to this transport.
    #[error("{0} is not a /quic-v1 address: write /ip4/HOST/udp/PORT/quic-v1")]
    Address(Multiaddr),
    /// Another program holds the port.
    #[error("udp port {} is in use: stop the program that holds it, or listen on another port", .0.port())]
    PortBusy(SocketAddr),
    /// The system does not permit the use of the port.
    #[error("not allowed to open udp {0}: choose a port above 1023, or allow UDP for this program")]
    PortForbidden(SocketAddr),
    /// The machine does not have the address.
    #[error("{} is not an address of this machine: listen on 0.0.0.0 or on one it has", .0.ip())]
    NoSuchAddress(SocketAddr),
    /// The socket failed for another reason.
    #[error("udp socket {addr}: {source}")]
    Socket {
        /// The local address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The network interfaces cannot be watched.
    #[error(
        "cannot watch the network interfaces ({0}): listen on a particular address instead of a wildcard"
    )]
    Interfaces(io::Error),
    /// No certificate can be made from the identity.
    #[error("cannot make a certificate from the identity: {0}")]
    Certificate(String),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A setting is out of bounds.
    #[error("{name} = {value} is out of bounds: at most {max}")]
    Setting {
        /// The field of [`Config`](super::Config).
        name: &'static str,
        /// Its value.
        value: u64,
        /// The largest allowed value.
        max: u64,
    },
    /// The dial could not start.
    #[error("cannot dial: {0}")]
    Dial(#[from] quinn::ConnectError),
    /// The connection broke, or was never established.
    #[error(transparent)]
    Connection(#[from] quinn::ConnectionError),
    /// The handshake did not complete in time.
    #[error("no handshake within {} ms", .0.as_millis())]
    HandshakeTimeout(Duration),
    /// Another peer than the expected one answers at the address.
    #[error(
        "{} answers where {} was expected: the address is out of date, or not its own",
        .0.found, .0.expected
    )]
    WrongPeer(Box<Mismatch>),
    /// The remote supports QUIC but not the requested kind of connection.
    #[error("the remote does not speak {0}: use a libp2p stream instead")]
    Unsupported(&'static str),
    /// The remote has no libp2p certificate.
    #[error("the remote has no libp2p identity")]
    NoIdentity,
    /// [`Admission`](super::Admission) refused the peer.
    #[error("{0} is not admitted")]
    Denied(PeerId),
    /// The peer already has the maximum number of connections.
    #[error("{peer} has {max} connections of this kind already")]
    PeerFull {
        /// The peer.
        peer: PeerId,
        /// The maximum for each peer.
        max: usize,
    },
    /// The endpoint already has the maximum number of connections.
    #[error("there are {max} connections already")]
    Full {
        /// The maximum.
        max: usize,
    },
    /// A hole punch needs a listening port.
    #[error("nothing listens on this address family: listen before punching a hole")]
    NoListener,
    /// A hole punch needs the id of the peer that will connect.
    #[error("{0} names no peer: a hole punch needs /p2p/PEER at its end")]
    PunchNeedsPeer(Multiaddr),
    /// A hole punch to this address is already running, or too many are.
    #[error("a hole punch to {0} is already running, or too many are")]
    PunchBusy(SocketAddr),
    /// The peer did not connect through the hole.
    #[error("no connection came through the punched hole to {addr} within {} ms", .after.as_millis())]
    PunchTimeout {
        /// The address that was punched.
        addr: SocketAddr,
        /// How long the hole was kept open.
        after: Duration,
    },
    /// There is no control connection to the peer.
    #[error("no control connection to {0}: dial its address")]
    NoPath(PeerId),
    /// The endpoint is shut down.
    #[error("the endpoint is shut down")]
    Closed,
}

/// The expected and the actual peer at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// The expected peer.
    pub expected: PeerId,
    /// The peer that answered.
    pub found: PeerId,
}

impl Error {
    /// Maps a socket's error to the variant that tells what to do.
    pub(super) fn socket(addr: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortBusy(addr),
            io::ErrorKind::PermissionDenied => Self::PortForbidden(addr),
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress(addr),
            _ => Self::Socket { addr, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_port_is_one_line_that_says_what_to_do() {
        let addr = "0.0.0.0:443".parse().unwrap();
        let refused = Error::socket(addr, io::ErrorKind::PermissionDenied.into());
        assert!(matches!(refused, Error::PortForbidden(at) if at == addr));
        let line = refused.to_string();
        assert!(
            line.contains("0.0.0.0:443") && !line.contains('\n'),
            "{line}"
        );
        assert!(line.contains("above 1023"), "{line}");
    }
}
