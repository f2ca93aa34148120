//! State that the readers of the outer ports, the delivering thread and the handle share.

use super::counters::Tally;
use super::fabric::Fabric;
use super::nat::Ports;
use super::outer::Outer;
use super::seats::SeatId;
use bytes::Bytes;
use quinn::udp::RecvMeta;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// State that the readers, the delivering thread and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Notified when a unit is due before [`State::wake`].
    pub(super) due: Condvar,
    pub(super) began: Instant,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) fabric: Fabric,
    pub(super) ports: OuterPorts,
    pub(super) pipes: Pipes,
    /// When the delivering thread wakes up by itself.
    pub(super) wake: Duration,
    pub(super) stop: bool,
    /// Traffic from or to an address that no daemon has.
    pub(super) strangers: Tally,
    /// Traffic that the system refused to send.
    pub(super) unsent: Tally,
}

impl Shared {
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the datagrams that arrived at an outer port.
    pub(super) fn take<'a>(
        &self,
        to: SocketAddrV4,
        messages: impl Iterator<Item = (&'a RecvMeta, Bytes)>,
    ) {
        let mut state = self.lock();
        let now = self.now();
        for (meta, bytes) in messages {
            let SocketAddr::V4(from) = meta.addr else {
                continue;
            };
            let stride = meta.stride.max(1);
            // An empty datagram also counts as one.
            for index in 0..bytes.len().div_ceil(stride).max(1) {
                let range = index * stride..bytes.len().min((index + 1) * stride);
                let part = bytes.slice(range);
                let State { fabric, ports, .. } = &mut *state;
                let len = part.len();
                if !fabric.offer(now, from, to, part, meta.ecn, ports) {
                    state.strangers.add(len);
                }
            }
        }
        self.wake(&state);
    }

    /// Wakes the delivering thread if a unit is due before it wakes up by itself.
    pub(super) fn wake(&self, state: &State) {
        if state.fabric.next_at().is_some_and(|at| at < state.wake) {
            self.due.notify_one();
        }
    }

    /// True while two daemons have no connection over TCP, which needs both directions.
    pub(super) fn parts(&self, a: SeatId, b: SeatId) -> bool {
        let now = self.now();
        let cuts = &self.lock().fabric.cuts;
        cuts.parts(a, b, now) || cuts.parts(b, a, now)
    }

    /// Counts a connection to a port, or from an address, that no daemon has.
    pub(super) fn stranger(&self) {
        self.lock().strangers.add(0);
    }

    /// The daemon that a connection comes from. It is known by its address or, since libp2p binds
    /// all addresses when it dials from its listening port, by that port, which is unique to the
    /// daemon.
    pub(super) fn dialer(&self, from: SocketAddr) -> Option<SeatId> {
        let state = self.lock();
        let IpAddr::V4(ip) = from.ip() else {
            return None;
        };
        let by_port = || (ip == Ipv4Addr::LOCALHOST).then(|| state.pipes.owner(from.port()));
        state.fabric.sender(ip).or_else(|| by_port().flatten())
    }
}

#[derive(Debug)]
pub(super) struct OuterPorts {
    runtime: Handle,
    shared: Weak<Shared>,
    open: BTreeMap<SocketAddrV4, (Arc<Outer>, AbortHandle)>,
}

impl OuterPorts {
    /// Starts without ports. Their readers will run on `runtime`.
    pub(super) fn new(runtime: Handle, shared: Weak<Shared>) -> Self {
        Self {
            runtime,
            shared,
            open: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, address: &SocketAddrV4) -> Option<&Arc<Outer>> {
        self.open.get(address).map(|(outer, _)| outer)
    }

    /// Closes all ports.
    pub(super) fn clear(&mut self) {
        for (_, reader) in self.open.values() {
            reader.abort();
        }
        self.open.clear();
    }
}

impl Ports for OuterPorts {
    fn open(&mut self, address: SocketAddrV4) -> bool {
        let _runtime = self.runtime.enter();
        match Outer::bind(address) {
            Ok(outer) => {
                let outer = Arc::new(outer);
                let reader = read(Arc::clone(&outer), self.shared.clone());
                let reader = self.runtime.spawn(reader).abort_handle();
                self.open.insert(address, (outer, reader));
                true
            }
            Err(error) => {
                tracing::debug!(%address, %error, "an outer port cannot be bound");
                false
            }
        }
    }

    fn close(&mut self, address: SocketAddrV4) {
        if let Some((_, reader)) = self.open.remove(&address) {
            reader.abort();
        }
    }
}

async fn read(outer: Arc<Outer>, shared: Weak<Shared>) {
    loop {
        let receive = || match shared.upgrade() {
            Some(shared) => outer
                .receive(|datagrams| shared.take(outer.address(), datagrams))
                .map(|()| true),
            None => Ok(false),
        };
        match outer.socket().async_io(Interest::READABLE, receive).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(address = %outer.address(), %error, "an outer port failed");
                return;
            }
        }
    }
}

/// The directions of connections, and the port of each daemon.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pub(super) next: u64,
    pub(super) open: BTreeMap<u64, mpsc::UnboundedSender<Bytes>>,
    ports: BTreeMap<u16, SeatId>,
}

impl Pipes {
    /// Registers the port on which the daemon listens and from which it dials.
    pub(super) fn publish(&mut self, port: u16, seat: SeatId) {
        self.ports.insert(port, seat);
    }

    pub(super) fn owner(&self, port: u16) -> Option<SeatId> {
        self.ports.get(&port).copied()
    }

    /// Delivers bytes to a direction; no bytes end it. Bytes without a reader are dropped.
    pub(super) fn hand_over(&self, pipe: u64, bytes: Bytes) {
        if let Some(writer) = self.open.get(&pipe) {
            let _ = writer.send(bytes);
        }
    }
}
