//! The result of one transfer.

use murmurate_net::quic::PathStats;
use serde::{Deserialize, Serialize};

/// The result of one transfer, as the process of the near end prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes that arrived within the time limit.
    pub bytes: u64,
    /// Seconds from the order to the answer of the far end.
    pub seconds: f64,
    /// Seconds until the connection was usable.
    pub connect_s: f64,
    /// CPU seconds of the near end, from the order to the answer.
    pub near_cpu_s: f64,
    /// CPU seconds of the far end, in the same interval.
    pub far_cpu_s: f64,
    /// Round-trip times of small messages before the transfer, microseconds.
    pub rtt_idle_us: Vec<u32>,
    /// Round-trip times of small messages during the transfer, microseconds.
    pub rtt_loaded_us: Vec<u32>,
    /// Counters of the connection, if the way has them.
    pub path: Option<PathFigures>,
}

/// Counters of a QUIC connection at the near end, from the handshake to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathFigures {
    /// Bytes of UDP payload sent.
    pub sent_bytes: u64,
    /// Bytes declared lost. Their content was sent again.
    pub lost_bytes: u64,
    /// Number of packets sent.
    pub sent_packets: u64,
    /// Number of system calls that sent them.
    pub sent_batches: u64,
    /// The largest UDP payload at the end, bytes.
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
