//! Measurements of a connection's path. They do not include what its streams carried.

use crate::congestion::least_rtt;
use std::time::Duration;

/// A connection's counters since its start, and its current estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathStats {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time above zero.
    pub min_rtt: Duration,
    /// The congestion window, in bytes.
    pub congestion_window: u64,
    /// How often the congestion controller was informed of loss or marks.
    pub congestion_events: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// UDP payload sent, in bytes. An inbound connection counts here what its socket keeps back of its first
    /// flight; `Endpoint::traffic` does not.
    pub sent_bytes: u64,
    /// UDP payload received, in bytes.
    pub received_bytes: u64,
    /// Packets that were declared lost.
    pub lost_packets: u64,
    /// Bytes that were declared lost. Their content is sent again.
    pub lost_bytes: u64,
    /// UDP send calls to the system. A batch of packets counts as one.
    pub sent_batches: u64,
    /// The largest UDP payload that the path is known to carry.
    pub mtu: u16,
    /// How often large packets stopped arriving and the payload size was lowered.
    pub black_holes: u64,
}

/// UDP payload in both directions, bytes. Includes headers, acknowledgements and retransmissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
    /// The part of the sent bytes that was declared lost.
    pub lost: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, path: &PathStats) {
        self.sent += path.sent_bytes;
        self.received += path.received_bytes;
        self.lost += path.lost_bytes;
    }
}

impl PathStats {
    /// Reads a connection's statistics.
    #[must_use]
    pub fn of(connection: &quinn::Connection) -> Self {
        let stats = connection.stats();
        let min_rtt = match stats.path.min_rtt {
            Duration::ZERO => least_rtt(connection.congestion_state()),
            above => Some(above),
        };
        Self {
            rtt: stats.path.rtt,
            min_rtt: min_rtt.unwrap_or(stats.path.rtt),
            congestion_window: stats.path.cwnd,
            congestion_events: stats.path.congestion_events,
            sent_packets: stats.path.sent_packets,
            sent_bytes: stats.udp_tx.bytes,
            received_bytes: stats.udp_rx.bytes,
            lost_packets: stats.path.lost_packets,
            lost_bytes: stats.path.lost_bytes,
            sent_batches: stats.udp_tx.ios,
            mtu: stats.path.current_mtu,
            black_holes: stats.path.black_holes_detected,
        }
    }

    /// Lost bytes divided by sent bytes; 0 before anything was sent.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        match self.sent_bytes {
            0 => 0.0,
            sent => self.lost_bytes as f64 / sent as f64,
        }
    }
}
