//! Converts multiaddresses of this transport to socket addresses and back. DNS names must be
//! resolved before.

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use std::net::{IpAddr, SocketAddr};

/// The parts of `/ip4|ip6/HOST/udp/PORT/quic-v1[/p2p/PEER]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicAddr {
    /// Host and port.
    pub socket: SocketAddr,
    /// The peer that is expected there, if the address names one.
    pub peer: Option<PeerId>,
}

impl QuicAddr {
    /// Parses a multiaddress; `None` if it belongs to another transport.
    #[must_use]
    pub fn parse(addr: &Multiaddr) -> Option<Self> {
        let mut parts = addr.iter();
        let ip = match parts.next()? {
            Protocol::Ip4(ip) => IpAddr::V4(ip),
            Protocol::Ip6(ip) => IpAddr::V6(ip),
            _ => return None,
        };
        let Protocol::Udp(port) = parts.next()? else {
            return None;
        };
        let Protocol::QuicV1 = parts.next()? else {
            return None;
        };
        let peer = match parts.next() {
            None => None,
            Some(Protocol::P2p(peer)) => Some(peer),
            Some(_) => return None,
        };
        let socket = SocketAddr::new(ip, port);
        parts.next().is_none().then_some(Self { socket, peer })
    }

    /// An address with host and port, which dialling requires.
    #[must_use]
    pub fn is_dialable(&self) -> bool {
        self.socket.port() != 0 && !self.socket.ip().is_unspecified()
    }
}

/// The `/quic-v1` multiaddress of a socket address, without a peer.
#[must_use]
pub fn multiaddr_of(socket: SocketAddr) -> Multiaddr {
    let ip = match socket.ip() {
        IpAddr::V4(ip) => Protocol::Ip4(ip),
        IpAddr::V6(ip) => Protocol::Ip6(ip),
    };
    Multiaddr::empty()
        .with(ip)
        .with(Protocol::Udp(socket.port()))
        .with(Protocol::QuicV1)
}

/// The address with host and port only. An IPv6 address from a socket also has a flow label and a
/// scope, which a multiaddress does not have.
pub(super) fn bare(socket: SocketAddr) -> SocketAddr {
    SocketAddr::new(socket.ip().to_canonical(), socket.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Option<QuicAddr> {
        QuicAddr::parse(&text.parse().expect("a multiaddress"))
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        for text in [
            "/ip4/1.2.3.4/udp/5",
            "/ip4/1.2.3.4/tcp/5",
            "/ip4/1.2.3.4/udp/5/quic",
            "/dns4/example.org/udp/5/quic-v1",
            "/ip4/1.2.3.4/udp/5/quic-v1/webtransport",
            "/ip4/1.2.3.4/udp/5/quic-v1/p2p-circuit",
            "/ip4/1.2.3.4/udp/5/quic-v1/p2p/12D3KooW9xk7Zp1gejwfwNpfm6L9zH5NL4Bx5rm94LRYJJHJuARZ/p2p-circuit",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_peer_at_the_end_is_read() {
        let text =
            "/ip6/::1/udp/5/quic-v1/p2p/12D3KooW9xk7Zp1gejwfwNpfm6L9zH5NL4Bx5rm94LRYJJHJuARZ";
        let read = parse(text).expect("ours");
        assert_eq!(read.socket, "[::1]:5".parse().unwrap());
        assert_eq!(
            read.peer.map(|peer| peer.to_string()).as_deref(),
            Some("12D3KooW9xk7Zp1gejwfwNpfm6L9zH5NL4Bx5rm94LRYJJHJuARZ")
        );
    }

    #[test]
    fn a_wildcard_cannot_be_dialed() {
        assert!(!parse("/ip4/0.0.0.0/udp/5/quic-v1").unwrap().is_dialable());
        assert!(!parse("/ip4/1.2.3.4/udp/0/quic-v1").unwrap().is_dialable());
        assert!(parse("/ip4/1.2.3.4/udp/5/quic-v1").unwrap().is_dialable());
    }

    proptest! {
        #[test]
        fn an_address_survives_the_way_there_and_back(ip: IpAddr, port: u16) {
            let socket = SocketAddr::new(ip, port);
            let read = QuicAddr::parse(&multiaddr_of(socket));
            prop_assert_eq!(read, Some(QuicAddr { socket, peer: None }));
        }
    }
}
