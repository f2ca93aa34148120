//! One UDP socket with a quinn endpoint. `inbound` handles the connections that arrive there.

use crate::quic::addr::bare;
use crate::quic::batches::Batches;
use crate::quic::buffers::SocketBuffers;
use crate::quic::error::Error;
use crate::quic::flights::Flights;
use libp2p::core::transport::ListenerId;
use quinn::{EndpointConfig, Runtime, ServerConfig, TokioRuntime};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::AbortHandle;

/// IPv4 or IPv6. Each socket supports one of them, so that both may listen on the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn of(addr: SocketAddr) -> Self {
        match addr.ip().to_canonical() {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The wildcard address with a port that the system chooses.
    pub(super) fn any(self) -> SocketAddr {
        match self {
            Self::V4 => (Ipv4Addr::UNSPECIFIED, 0).into(),
            Self::V6 => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }
}

/// A bound socket. Dropping it stops accepting connections; existing ones live until they are
/// closed.
pub(super) struct Port {
    /// The listener, if the socket accepts connections.
    pub(super) listener: Option<ListenerId>,
    pub(super) quinn: quinn::Endpoint,
    pub(super) local: SocketAddr,
    /// The socket itself, to send packets without quinn (hole punching).
    raw: UdpSocket,
    /// Bytes sent to addresses that may be forged.
    pub(super) flights: Arc<Flights>,
    accepting: Mutex<Option<AbortHandle>>,
}

impl Port {
    /// Binds `addr`. Must be called inside a tokio runtime.
    pub(super) fn bind(
        addr: SocketAddr,
        buffer: usize,
        endpoint: EndpointConfig,
        server: Option<(ListenerId, ServerConfig)>,
        kept_back: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let payload_max = u16::try_from(endpoint.get_max_udp_payload_size()).unwrap_or(u16::MAX);
        let failed = |source| Error::socket(addr, source);
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))
            .map_err(failed)?;
        if addr.is_ipv6() {
            socket.set_only_v6(true).map_err(failed)?;
        }
        SocketBuffers::set(&socket, buffer).map_err(failed)?;
        socket.bind(&addr.into()).map_err(failed)?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr().map_err(failed)?;
        let raw = socket.try_clone().map_err(failed)?;
        let (listener, server) = server.unzip();
        let runtime = Arc::new(TokioRuntime);
        let socket = runtime.wrap_udp_socket(socket).map_err(failed)?;
        let flights = Arc::new(Flights::new(kept_back));
        let socket = Arc::new(Batches::new(socket, payload_max, Arc::clone(&flights)));
        let quinn = quinn::Endpoint::new_with_abstract_socket(endpoint, server, socket, runtime)
            .map_err(failed)?;
        Ok(Self {
            listener,
            quinn,
            local: bare(local),
            raw,
            flights,
            accepting: Mutex::default(),
        })
    }

    /// Sets the task that accepts connections, which ends with the port.
    pub(super) fn accept_with(&self, task: AbortHandle) {
        *self.accepting() = Some(task);
    }

    fn accepting(&self) -> std::sync::MutexGuard<'_, Option<AbortHandle>> {
        self.accepting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.quinn.set_server_config(None);
        if let Some(task) = self.accepting().take() {
            task.abort();
        }
    }

    /// A packet to `to` can leave through this socket.
    pub(super) fn reaches(&self, to: SocketAddr) -> bool {
        let here = self.local.ip();
        Family::of(self.local) == Family::of(to)
            && (here.is_unspecified() || here.is_loopback() == to.ip().is_loopback())
    }

    /// Sends one packet without quinn. If the socket's buffer is full, the packet is dropped.
    pub(super) fn send_raw(&self, packet: &[u8], to: SocketAddr) -> std::io::Result<()> {
        match self.raw.send_to(packet, to) {
            Ok(_) => Ok(()),
            // quinn made the socket non-blocking.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(addr: &str) -> Result<Port, Error> {
        let endpoint = EndpointConfig::default();
        Port::bind(
            addr.parse().unwrap(),
            1 << 20,
            endpoint,
            None,
            Arc::default(),
        )
    }

    #[tokio::test]
    async fn a_busy_port_and_a_foreign_address_are_told_apart() {
        let first = bind("127.0.0.1:0").unwrap();
        let again = bind(&first.local.to_string()).map(drop).unwrap_err();
        assert!(
            matches!(again, Error::PortBusy(addr) if addr == first.local),
            "{again}"
        );
        let foreign = bind("192.0.2.1:0").map(drop).unwrap_err();
        assert!(matches!(foreign, Error::NoSuchAddress(_)), "{foreign}");
    }

    #[tokio::test]
    async fn loopback_is_left_by_no_packet() {
        let (inner, any) = (bind("127.0.0.1:0").unwrap(), bind("0.0.0.0:0").unwrap());
        let (near, far) = (
            "127.0.0.1:9".parse().unwrap(),
            "192.0.2.1:9".parse().unwrap(),
        );
        assert!(inner.reaches(near) && !inner.reaches(far));
        assert!(any.reaches(near) && any.reaches(far));
        assert!(!any.reaches("[::1]:9".parse().unwrap()));
    }
}
