//! What passed over an emulated link, and what did not.

/// A count of datagrams (for TCP: of chunks) and their bytes. Bytes are those that the daemon's socket saw,
/// without the headers that the rate is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one.
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

/// One direction of a link. `offered` is the sum of the others and of what is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// What came to the link.
    pub offered: Tally,
    /// What left it at the other end.
    pub delivered: Tally,
    /// What found its queue full.
    pub dropped_queue: Tally,
    /// What it lost on the way.
    pub dropped_loss: Tally,
    /// What the router refused: downwards what was not asked for, upwards what it had no port for.
    pub dropped_nat: Tally,
}

impl FlowCounters {
    /// What is under way.
    pub fn under_way(&self) -> Tally {
        let gone = self.delivered + self.dropped_queue + self.dropped_loss + self.dropped_nat;
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
