//! The ports that a daemon got from the system, so that it listens on them again after a restart and
//! the addresses that others remember stay true.

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use murmurate_net::free::Wire;
use murmurate_protocol::SortedMap;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The last port of each transport and family, such as `udp4`. Bounded: there are four.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ports(SortedMap<String, u16>);

impl Ports {
    /// Remembers the port of an address on which this daemon listens, the first of its transport and
    /// family: later ones are those by which others see it. Returns whether it is news.
    pub fn remember(&mut self, address: &Multiaddr) -> bool {
        let relayed = address
            .iter()
            .any(|part| matches!(part, Protocol::P2pCircuit));
        let Some((wire, at)) = socket_of(address) else {
            return false;
        };
        let name = name(wire, at.ip());
        if relayed || at.port() == 0 || self.0.contains_key(name) {
            return false;
        }
        self.0.insert(name.to_owned(), at.port());
        true
    }

    /// The address with the remembered port, if it leaves the port to the system.
    pub(crate) fn wish(&self, address: &Multiaddr) -> Option<Multiaddr> {
        let (wire, at) = socket_of(address).filter(|(_, at)| at.port() == 0)?;
        let port = *self.0.get(name(wire, at.ip())).filter(|port| **port != 0)?;
        let with_port = |part| match part {
            Protocol::Tcp(0) => Protocol::Tcp(port),
            Protocol::Udp(0) => Protocol::Udp(port),
            other => other,
        };
        Some(address.iter().map(with_port).collect())
    }

    /// True while no port is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The transport and the socket of an address, if it begins with an IP address and a port.
pub fn socket_of(address: &Multiaddr) -> Option<(Wire, SocketAddr)> {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some((Wire::Tcp, (ip, port).into())),
        Protocol::Udp(port) => Some((Wire::Udp, (ip, port).into())),
        _ => None,
    }
}

fn name(wire: Wire, ip: IpAddr) -> &'static str {
    match (wire, ip.is_ipv4()) {
        (Wire::Tcp, true) => "tcp4",
        (Wire::Tcp, false) => "tcp6",
        (Wire::Udp, true) => "udp4",
        (Wire::Udp, false) => "udp6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_the_systems_choice_is_wished_for_again() {
        let address = |text: &str| text.parse::<Multiaddr>().unwrap();
        let mut ports = Ports::default();
        let free = address("/ip4/0.0.0.0/udp/0/quic-v1");
        assert_eq!(ports.wish(&free), None);
        assert!(ports.remember(&address("/ip4/10.0.0.7/udp/4242/quic-v1")));
        assert!(!ports.remember(&address("/ip4/127.0.0.1/udp/4242/quic-v1")));
        assert_eq!(
            ports.wish(&free),
            Some(address("/ip4/0.0.0.0/udp/4242/quic-v1"))
        );
        for other in [
            "/ip4/0.0.0.0/udp/9/quic-v1",
            "/ip4/0.0.0.0/tcp/0",
            "/ip6/::/udp/0/quic-v1",
        ] {
            assert_eq!(ports.wish(&address(other)), None, "{other}");
        }
    }
}
