//! The directions of TCP connections over emulated links, and which daemon has which port.

use super::fabric::SeatId;
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// Directions of connections, and which daemon has which port.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pub(super) next: u64,
    pub(super) open: BTreeMap<u64, mpsc::UnboundedSender<Bytes>>,
    ports: BTreeMap<u16, SeatId>,
}

impl Pipes {
    /// The daemon listens on the port, and dials from it.
    pub(super) fn publish(&mut self, port: u16, seat: SeatId) {
        self.ports.insert(port, seat);
    }

    /// Whose port it is.
    pub(super) fn owner(&self, port: u16) -> Option<SeatId> {
        self.ports.get(&port).copied()
    }

    /// Bytes are due; none end the direction. Bytes without a reader are dropped.
    pub(super) fn hand_over(&self, pipe: u64, bytes: Bytes) {
        if let Some(writer) = self.open.get(&pipe) {
            let _ = writer.send(bytes);
        }
    }
}
