//! The largest packet of the route to an address, as the system knows it.

use crate::quic::batches::PAYLOAD_MAX;
use std::net::SocketAddr;

/// The UDP payload of Ethernet with IPv6: what a path is tried with if its route is not known.
pub(super) const ETHERNET_PAYLOAD: u16 = 1452;

/// The largest UDP payload in bytes with which path MTU discovery should try the path to `remote`.
///
/// It comes from the route's MTU. So a path over Ethernet costs no packets that are too large for
/// it, while loopback and jumbo frames are used where they are. Discovery tries sizes below it one
/// after the other, because a link further on may carry less.
pub(super) fn payload_of(remote: SocketAddr) -> u16 {
    match mtu_of(remote) {
        Some(mtu) => payload_in(mtu, remote).max(ETHERNET_PAYLOAD),
        None => ETHERNET_PAYLOAD,
    }
}

/// The UDP payload of a packet of `mtu` bytes. Ordinary Ethernet counts as if it had IPv6, because
/// tunnels are common there.
fn payload_in(mtu: u32, remote: SocketAddr) -> u16 {
    let headers = if remote.ip().to_canonical().is_ipv4() {
        28
    } else {
        48
    };
    let payload = mtu.saturating_sub(headers).min(u32::from(PAYLOAD_MAX));
    match u16::try_from(payload).unwrap_or(PAYLOAD_MAX) {
        ..=1472 => ETHERNET_PAYLOAD,
        jumbo => jumbo,
    }
}

/// The MTU of the route in bytes; `None` where the system does not tell.
#[cfg(target_os = "linux")]
fn mtu_of(remote: SocketAddr) -> Option<u32> {
    use crate::quic::port::Family;
    use rustix::net::sockopt;
    // Nothing is sent: connecting a UDP socket only looks up the route.
    let probe = std::net::UdpSocket::bind(Family::of(remote).any()).ok()?;
    let remote = crate::quic::addr::bare(remote);
    probe.connect(remote).ok()?;
    match Family::of(remote) {
        Family::V4 => sockopt::ip_mtu(&probe).ok(),
        Family::V6 => sockopt::ipv6_mtu(&probe).ok(),
    }
}

#[cfg(not(target_os = "linux"))]
fn mtu_of(_: SocketAddr) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_says_how_large_packets_may_be() {
        let (v4, v6): (SocketAddr, SocketAddr) = (
            ([192, 0, 2, 1], 1).into(),
            "[2001:db8::1]:1".parse().unwrap(),
        );
        assert_eq!(payload_in(1500, v4), ETHERNET_PAYLOAD);
        assert_eq!(payload_in(1280, v6), ETHERNET_PAYLOAD);
        assert_eq!(payload_in(9000, v4), 8972);
        assert_eq!(payload_in(9000, v6), 8952);
        assert_eq!(payload_in(u32::MAX, v4), PAYLOAD_MAX);
        assert_eq!(payload_in(0, v4), ETHERNET_PAYLOAD);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn loopback_has_large_packets() {
        assert!(payload_of(([127, 0, 0, 1], 9).into()) > 10_000);
    }
}
