//! In-memory UDP sockets on both sides of one virtual link, under tokio's clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::time::{Instant, Sleep, sleep_until};

use super::link::{Counters, Direction, LinkSpec};

struct Datagram {
    at: Instant,
    sequence: u64,
    from: SocketAddr,
    ecn: Option<EcnCodepoint>,
    bytes: Vec<u8>,
}

impl PartialEq for Datagram {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Datagram {}

impl PartialOrd for Datagram {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datagram {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

struct Inbox {
    waiting: BinaryHeap<Reverse<Datagram>>,
    waker: Option<Waker>,
    sleep: Pin<Box<Sleep>>,
}

struct State {
    forward: Direction,
    backward: Direction,
    inboxes: HashMap<SocketAddr, Inbox>,
    sequence: u64,
}

/// The link with all its sockets.
#[derive(Clone)]
pub struct Wire(Arc<Mutex<State>>);

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    pub fn new(spec: &LinkSpec) -> Self {
        Self(Arc::new(Mutex::new(State {
            forward: Direction::new(spec, true),
            backward: Direction::new(spec, false),
            inboxes: HashMap::new(),
            sequence: 0,
        })))
    }

    /// A socket on one side. Its datagrams travel forwards or backwards.
    pub fn socket(&self, local: SocketAddr, forward: bool) -> Arc<VirtualSocket> {
        let inbox = Inbox {
            waiting: BinaryHeap::new(),
            waker: None,
            sleep: Box::pin(sleep_until(Instant::now())),
        };
        self.0.lock().unwrap().inboxes.insert(local, inbox);
        Arc::new(VirtualSocket {
            wire: self.clone(),
            local,
            forward,
        })
    }

    /// Traffic in the forward direction.
    pub fn forward(&self) -> Counters {
        self.0.lock().unwrap().forward.counters
    }
}

/// One socket of a [`Wire`].
#[derive(Debug)]
pub struct VirtualSocket {
    wire: Wire,
    local: SocketAddr,
    forward: bool,
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncUdpSocket for VirtualSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut guard = self.wire.0.lock().unwrap();
        let state = &mut *guard;
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        for bytes in transmit.contents.chunks(size.max(1)) {
            let direction = if self.forward {
                &mut state.forward
            } else {
                &mut state.backward
            };
            let Some(at) = direction.carry(bytes.len()) else {
                continue;
            };
            let Some(inbox) = state.inboxes.get_mut(&transmit.destination) else {
                continue;
            };
            state.sequence += 1;
            let first = inbox.waiting.peek().is_none_or(|head| at < head.0.at);
            inbox.waiting.push(Reverse(Datagram {
                at,
                sequence: state.sequence,
                from: self.local,
                ecn: transmit.ecn,
                bytes: bytes.to_vec(),
            }));
            if first && let Some(waker) = inbox.waker.take() {
                waker.wake();
            }
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut guard = self.wire.0.lock().unwrap();
        let inbox = guard.inboxes.get_mut(&self.local).unwrap();
        loop {
            let now = Instant::now();
            let mut filled = 0;
            while filled < bufs.len()
                && inbox.waiting.peek().is_some_and(|head| head.0.at <= now)
                && let Some(Reverse(datagram)) = inbox.waiting.pop()
            {
                let len = datagram.bytes.len();
                bufs[filled][..len].copy_from_slice(&datagram.bytes);
                meta[filled] = RecvMeta {
                    addr: datagram.from,
                    len,
                    stride: len,
                    ecn: datagram.ecn,
                    dst_ip: Some(self.local.ip()),
                };
                filled += 1;
            }
            if filled > 0 {
                return Poll::Ready(Ok(filled));
            }
            inbox.waker = Some(cx.waker().clone());
            let Some(head) = inbox.waiting.peek() else {
                return Poll::Pending;
            };
            inbox.sleep.as_mut().reset(head.0.at);
            if inbox.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn max_transmit_segments(&self) -> usize {
        10
    }

    fn may_fragment(&self) -> bool {
        false
    }
}
