//! The path of a link's packets.

use crate::net::from_libp2p;
use libp2p::Multiaddr;
use libp2p::core::ConnectedPoint;
use libp2p::multiaddr::Protocol;
use murmurate_protocol::PeerId;

/// The path of a link's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// One end dialled the other directly.
    Direct,
    /// Directly, after hole punching.
    Punched,
    /// Through the relay with this id; `None` if the relay's key is not Ed25519.
    Relayed(Option<PeerId>),
}

impl Path {
    /// The path of a new connection. Whether it was made by hole punching becomes known later.
    pub(in crate::net) fn of(endpoint: &ConnectedPoint) -> Self {
        match endpoint.is_relayed() {
            true => Self::Relayed(relay_of(own_side(endpoint)).and_then(|p| from_libp2p(&p))),
            false => Self::Direct,
        }
    }

    /// Whether a relay carries the packets.
    pub fn is_relayed(self) -> bool {
        matches!(self, Self::Relayed(_))
    }

    /// The name in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Punched => "punched",
            Self::Relayed(_) => "relayed",
        }
    }
}

/// The address that names the relay: the remote one if we dialled, otherwise our own.
fn own_side(endpoint: &ConnectedPoint) -> &Multiaddr {
    match endpoint {
        ConnectedPoint::Dialer { address, .. } => address,
        ConnectedPoint::Listener { local_addr, .. } => local_addr,
    }
}

/// Whether the address goes through a relay.
pub(in crate::net) fn is_relayed(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// The relay in an address.
pub(in crate::net) fn relay_of(address: &Multiaddr) -> Option<libp2p::PeerId> {
    let mut relay = None;
    for part in address {
        match part {
            Protocol::P2p(peer) => relay = Some(peer),
            Protocol::P2pCircuit => return relay,
            _ => {}
        }
    }
    None
}

/// The address without the trailing peer id.
pub(super) fn without_peer(mut address: Multiaddr) -> Multiaddr {
    if matches!(address.iter().last(), Some(Protocol::P2p(_))) {
        address.pop();
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::core::Endpoint;
    use libp2p::core::transport::PortUse;
    use libp2p::identity::Keypair;

    #[test]
    fn the_relay_is_the_peer_before_the_circuit() {
        let [relay, other] = [(), ()].map(|()| Keypair::generate_ed25519().public().to_peer_id());
        let text = format!("/ip4/192.0.2.1/udp/1/quic-v1/p2p/{relay}/p2p-circuit/p2p/{other}");
        let circuit: Multiaddr = text.parse().unwrap();
        assert_eq!(relay_of(&circuit), Some(relay));
        let plain: Multiaddr = format!("/ip4/192.0.2.1/tcp/1/p2p/{other}").parse().unwrap();
        assert_eq!(relay_of(&plain), None);
        let dialled = |address: &Multiaddr| ConnectedPoint::Dialer {
            address: address.clone(),
            role_override: Endpoint::Dialer,
            port_use: PortUse::Reuse,
        };
        assert_eq!(Path::of(&dialled(&plain)), Path::Direct);
        let expected = Path::Relayed(from_libp2p(&relay));
        assert_eq!(Path::of(&dialled(&circuit)), expected);
        let arrived = ConnectedPoint::Listener {
            local_addr: circuit,
            send_back_addr: plain,
        };
        assert_eq!(Path::of(&arrived), expected);
        assert!(expected.is_relayed() && expected.name() == "relayed");
    }
}
