//! The system's measurements of a TCP connection.

use std::net::SocketAddr;
use std::time::Duration;

/// Measurements of a TCP connection since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Info {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time.
    pub min_rtt: Duration,
    /// Segments sent, including those sent again.
    pub sent: u32,
    /// Segments sent again.
    pub resent: u32,
}

impl Info {
    /// Asks the system. `None` where it does not tell.
    pub(super) fn of(local: SocketAddr, remote: SocketAddr) -> Option<Self> {
        system::tcp_info(local, remote).and_then(|bytes| Self::parse(&bytes))
    }

    /// Reads the fields of `struct tcp_info` (linux/tcp.h), which newer kernels only lengthen.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |offset: usize| {
            let field = bytes.get(offset..offset + 4)?;
            Some(u32::from_ne_bytes(field.try_into().ok()?))
        };
        Some(Self {
            rtt: Duration::from_micros(at(68)?.into()),
            min_rtt: Duration::from_micros(at(148)?.into()),
            sent: at(136)?,
            resent: at(100)?,
        })
    }
}

#[cfg(target_os = "linux")]
mod system {
    use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
    use netlink_packet_sock_diag::SockDiagMessage;
    use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
    use netlink_packet_sock_diag::inet::nlas::Nla;
    use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
    use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};
    use std::net::SocketAddr;

    const ANSWER_BYTES: usize = 8 << 10;

    /// `struct tcp_info` of the connection, through the kernel's sock_diag.
    pub(super) fn tcp_info(local: SocketAddr, remote: SocketAddr) -> Option<Vec<u8>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        let request = InetRequest {
            family: if local.is_ipv4() { AF_INET } else { AF_INET6 },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address: local.ip(),
                destination_address: remote.ip(),
                interface_id: 0,
                // Any socket with these addresses.
                cookie: [0xff; 8],
            },
        };
        let request = SockDiagMessage::InetRequest(request);
        let mut message = NetlinkMessage::new(header, request.into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let mut socket = Socket::new(NETLINK_SOCK_DIAG).ok()?;
        // The kernel answers within the call, so nothing waits.
        socket.bind_auto().ok()?;
        socket.set_non_blocking(true).ok()?;
        socket
            .send_to(&bytes, &netlink_sys::SocketAddr::new(0, 0), 0)
            .ok()?;
        let mut answer = Vec::with_capacity(ANSWER_BYTES);
        socket.recv(&mut answer, 0).ok()?;
        let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).ok()?;
        let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(answer)) = answer.payload
        else {
            return None;
        };
        answer.nlas.into_iter().find_map(|nla| match nla {
            Nla::TcpInfo(bytes) => Some(bytes),
            _ => None,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::net::SocketAddr;

    pub(super) fn tcp_info(_: SocketAddr, _: SocketAddr) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_over_loopback_is_measured() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let (local, remote) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
        near.write_all(&[7; 10_000]).unwrap();
        far.read_exact(&mut [0; 10_000]).unwrap();
        let info = Info::of(local, remote).unwrap();
        assert!(info.sent >= 2 && info.resent == 0, "{info:?}");
        assert!(
            info.rtt > Duration::ZERO && info.rtt < Duration::from_secs(1),
            "{info:?}"
        );
        assert!(info.min_rtt <= info.rtt, "{info:?}");
        let unknown = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!(Info::of(local, unknown), None);
    }

    #[test]
    fn a_kernel_that_tells_less_is_not_understood() {
        assert_eq!(Info::parse(&[0; 104]), None);
        assert_eq!(Info::parse(&[0; 152]), Some(Info::default()));
    }
}
