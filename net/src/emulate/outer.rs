//! A socket of the relay, which is one outer port of an emulated router.

use super::fabric::{Arrival, Load};
use bytes::Bytes;
use quinn::udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4};
use tokio::net::UdpSocket;

/// Buffers that one call may fill. Each receives one datagram, or several consecutive ones of one
/// sender.
const BATCH: usize = 8;

const BUFFER_BYTES: usize = 1 << 16;

/// Requested size of the sockets' receive buffers; the kernel may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The most bytes in one call, below the limit of an IPv4 datagram.
const SEND_BYTES_MAX: usize = 65_000;

thread_local! {
    /// One per thread and not per socket, because a symmetric router has a socket for every pair of
    /// daemons.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; BATCH * BUFFER_BYTES]);
}

#[derive(Debug)]
pub(super) struct Outer {
    address: SocketAddrV4,
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Outer {
    /// Opens the port.
    pub(super) fn bind(address: SocketAddrV4) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        // A smaller buffer is acceptable; its losses appear among the kernel's drops.
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let socket = UdpSocket::from_std(socket)?;
        Ok(Self {
            address,
            socket,
            state,
        })
    }

    pub(super) fn address(&self) -> SocketAddrV4 {
        self.address
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Reads all datagrams that have arrived and passes them to `take`.
    pub(super) fn receive(
        &self,
        take: impl FnOnce(&mut dyn Iterator<Item = (&RecvMeta, Bytes)>),
    ) -> io::Result<()> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut metas = [RecvMeta::default(); BATCH];
            let mut chunks = scratch.chunks_mut(BUFFER_BYTES);
            let mut buffers: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            let socket = UdpSockRef::from(&self.socket);
            let count = self.state.recv(socket, &mut buffers, &mut metas)?;
            let messages = metas.iter().zip(&buffers).take(count);
            take(&mut messages.map(|(meta, buffer)| {
                let len = meta.len.min(buffer.len());
                (meta, Bytes::copy_from_slice(&buffer[..len]))
            }));
            Ok(())
        })
    }

    /// Sends datagrams of the same size in one call. The last one may be shorter.
    pub(super) fn send(&self, run: &[Arrival], scratch: &mut Vec<u8>) -> io::Result<()> {
        let Some(Load::Datagram(first, mark)) = run.first().map(|arrival| &arrival.load) else {
            return Ok(());
        };
        let contents: &[u8] = if run.len() == 1 {
            first
        } else {
            scratch.clear();
            for arrival in run {
                if let Load::Datagram(bytes, _) = &arrival.load {
                    scratch.extend_from_slice(bytes);
                }
            }
            scratch
        };
        let transmit = Transmit {
            destination: SocketAddr::V4(run[0].to),
            ecn: *mark,
            contents,
            segment_size: (run.len() > 1).then_some(first.len()),
            src_ip: None,
        };
        self.state
            .try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    /// How many of the datagrams, which all have the same source and destination, fit into one
    /// call.
    pub(super) fn run_length(&self, arrivals: &[Arrival]) -> usize {
        let Some(Load::Datagram(first, mark)) = arrivals.first().map(|a| &a.load) else {
            return 1;
        };
        let most = self.state.max_gso_segments().max(1);
        let most = most.min(SEND_BYTES_MAX / first.len().max(1)).max(1);
        let mut length = 1;
        for arrival in arrivals.iter().take(most).skip(1) {
            match &arrival.load {
                Load::Datagram(bytes, m) if m == mark && bytes.len() == first.len() => length += 1,
                // A shorter datagram may only be the last one.
                Load::Datagram(bytes, m)
                    if m == mark && (1..first.len()).contains(&bytes.len()) =>
                {
                    return length + 1;
                }
                _ => break,
            }
        }
        length
    }
}
