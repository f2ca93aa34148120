//! The directions of TCP connections over emulated links, and the port of each daemon.

use super::fabric::SeatId;
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

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

    /// The daemon with this port.
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
