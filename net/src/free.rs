//! Probes for a free port, before it is bound for good.
//!
//! libp2p shares TCP ports between sockets of one user, so a second daemon on a port would start, and
//! some of the connections to the first would reach it.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// The transport of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A TCP port.
    Tcp,
    /// A UDP port.
    Udp,
}

/// Binds an address for a moment, shared with no other socket.
///
/// # Errors
/// `AddrInUse` if another socket has the port; otherwise why the address cannot be bound.
pub fn probe(wire: Wire, address: SocketAddr) -> io::Result<()> {
    let (kind, protocol) = match wire {
        Wire::Tcp => (Type::STREAM, Protocol::TCP),
        Wire::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if wire == Wire::Tcp {
        // Connections of a daemon that ended a moment ago do not count.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    match wire {
        // Two sockets that do not listen could share the port.
        Wire::Tcp => socket.listen(1),
        Wire::Udp => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn a_port_is_free_until_it_is_bound() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let taken = |wire| probe(wire, address).unwrap_err().kind() == io::ErrorKind::AddrInUse;
        assert!(taken(Wire::Tcp));
        drop(tcp);
        probe(Wire::Tcp, address).unwrap();
        let udp = UdpSocket::bind(address).unwrap();
        assert!(taken(Wire::Udp));
        drop(udp);
        probe(Wire::Udp, address).unwrap();
    }
}
