//! What one transfer came to.

use murmurate_net::quic::PathStats;
use serde::{Deserialize, Serialize};

/// What one transfer came to, as the near end's process prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes that arrived in time.
    pub bytes: u64,
    /// Seconds from the order to the far end's answer.
    pub seconds: f64,
    /// Seconds until the connection was usable.
    pub connect_s: f64,
    /// CPU seconds of the near end, from the order to the answer.
    pub near_cpu_s: f64,
    /// CPU seconds of the far end, likewise.
    pub far_cpu_s: f64,
    /// Round trips of small messages before the transfer, in microseconds.
    pub rtt_idle_us: Vec<u32>,
    /// Round trips of small messages during the transfer, in microseconds.
    pub rtt_loaded_us: Vec<u32>,
    /// What the connection measured, where the way tells.
    pub path: Option<PathFigures>,
}

/// A QUIC connection's counters at the near end, from its handshake to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathFigures {
    /// UDP payload sent, in bytes.
    pub sent_bytes: u64,
    /// Of that, declared lost; what was in it was sent again.
    pub lost_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// UDP sends that were one system call.
    pub sent_batches: u64,
    /// The largest UDP payload at the end.
    pub mtu: u16,
}

impl From<PathStats> for PathFigures {
    fn from(stats: PathStats) -> Self {
        Self {
            sent_bytes: stats.sent_bytes,
            lost_bytes: stats.lost_bytes,
            sent_packets: stats.sent_packets,
            sent_batches: stats.sent_batches,
            mtu: stats.mtu,
        }
    }
}
