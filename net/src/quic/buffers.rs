//! Requests socket buffers and verifies their size. `windows` has the flow-control windows.
//!
//! Datagrams that arrive while the daemon is not scheduled wait in the kernel's receive buffer. If
//! they do not fit, they are lost, and congestion control takes the loss for a full path.

use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;

/// Requested and granted sizes of the socket buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketBuffers {
    /// Requested size of each of the two buffers, bytes.
    pub asked: usize,
    /// Granted size of the receive buffer, bytes.
    pub receive: usize,
    /// Granted size of the send buffer, bytes.
    pub send: usize,
}

impl SocketBuffers {
    /// Requests `bytes` for each buffer and reads the granted sizes.
    pub(super) fn set(socket: &Socket, bytes: usize) -> io::Result<Self> {
        // Some systems refuse instead of capping. They keep the default, which is then reported.
        let _ = socket.set_recv_buffer_size(bytes);
        let _ = socket.set_send_buffer_size(bytes);
        Ok(Self {
            asked: bytes,
            receive: usable(socket.recv_buffer_size()?),
            send: usable(socket.send_buffer_size()?),
        })
    }

    /// The sizes that a socket on this machine would get, without binding one.
    pub(super) fn probe(bytes: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
            .or_else(|_| Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP)))?;
        Self::set(&socket, bytes)
    }

    /// A warning for the operator if the kernel granted less than requested.
    #[must_use]
    pub fn cap(&self) -> Option<BufferCap> {
        (self.receive.min(self.send) < self.asked).then_some(BufferCap(*self))
    }
}

/// Linux reports twice the size that was set, since half of it is for its own bookkeeping.
const fn usable(reported: usize) -> usize {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        reported / 2
    } else {
        reported
    }
}

/// The kernel granted smaller socket buffers than requested. Its text is one line for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferCap(pub SocketBuffers);

impl BufferCap {
    /// The command with which root can allow larger buffers.
    #[must_use]
    pub fn remedy(&self) -> String {
        let SocketBuffers {
            asked,
            receive,
            send,
        } = self.0;
        if !cfg!(any(target_os = "linux", target_os = "android")) {
            return format!("sysctl -w kern.ipc.maxsockbuf={}", asked.saturating_mul(2));
        }
        let caps = [("rmem_max", receive), ("wmem_max", send)];
        let settings: Vec<String> = caps
            .into_iter()
            .filter(|(_, granted)| *granted < asked)
            .map(|(name, _)| format!("net.core.{name}={asked}"))
            .collect();
        format!("sysctl -w {}", settings.join(" "))
    }
}

impl fmt::Display for BufferCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SocketBuffers {
            asked,
            receive,
            send,
        } = self.0;
        write!(
            f,
            "the kernel caps udp buffers at {receive} B to receive and {send} B to send, {asked} B asked: \
             fast links will lose packets; run as root: {}",
            self.remedy()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_is_measured() {
        let small = SocketBuffers::probe(64 << 10).unwrap();
        assert!(
            small.receive >= 64 << 10 && small.send >= 64 << 10,
            "{small:?}"
        );
        assert_eq!(small.cap(), None);
        let absurd = SocketBuffers::probe(1 << 30).unwrap();
        let cap = absurd.cap().expect("no kernel grants a GiB by default");
        assert!(cap.0.receive < 1 << 30);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_remedy_names_only_what_is_short() {
        let buffers = SocketBuffers {
            asked: 4 << 20,
            receive: 208 << 10,
            send: 4 << 20,
        };
        let cap = buffers.cap().unwrap();
        assert_eq!(cap.remedy(), "sysctl -w net.core.rmem_max=4194304");
        assert!(cap.to_string().ends_with(&cap.remedy()));
    }
}
