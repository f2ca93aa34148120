//! Counters of an emulated link.

use super::shaper::Fate;
use std::time::Duration;

/// A count of datagrams (for TCP, of chunks) and their bytes. Bytes are those at the daemon's
/// socket, without the headers that use the link's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of datagrams or chunks.
    pub packets: u64,
    /// Sum of their bytes.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Counters of one direction. `offered` is the sum of the other counts and of the traffic in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Traffic that entered the link.
    pub offered: Tally,
    /// Traffic that left the link at the other end.
    pub delivered: Tally,
    /// Traffic that was dropped because the queue was full.
    pub dropped_queue: Tally,
    /// Traffic that was lost at random.
    pub dropped_loss: Tally,
    /// Traffic that was dropped because its packets were larger than the link carries.
    pub dropped_size: Tally,
    /// Traffic that the router refused: downwards unsolicited datagrams, upwards those for which it
    /// had no free port.
    pub dropped_nat: Tally,
}

impl FlowCounters {
    /// Counts what a link did with `bytes`. Returns when they arrive, if they do.
    pub(super) fn count(&mut self, fate: Fate, bytes: usize) -> Option<Duration> {
        match fate {
            Fate::Deliver(at) => return Some(at),
            Fate::DropQueue => self.dropped_queue.add(bytes),
            Fate::DropLoss => self.dropped_loss.add(bytes),
            Fate::DropSize => self.dropped_size.add(bytes),
        }
        None
    }

    /// Traffic in transit.
    pub fn under_way(&self) -> Tally {
        let gone = self.delivered
            + self.dropped_queue
            + self.dropped_loss
            + self.dropped_size
            + self.dropped_nat;
        Tally {
            packets: self.offered.packets.saturating_sub(gone.packets),
            bytes: self.offered.bytes.saturating_sub(gone.bytes),
        }
    }
}

/// Both directions of a daemon's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// From the daemon.
    pub up: FlowCounters,
    /// To the daemon.
    pub down: FlowCounters,
}
