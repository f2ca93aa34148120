//! The bounds of bulk transfer, each with a default and its reason.

use murmurate_protocol::limits::SLICE_BYTES_MAX;
use std::time::Duration;

/// Bytes that are read or written between two looks at the clock. Larger pieces save little,
/// smaller ones cost a timer each.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Bytes of one encoded request or reply header; the largest takes under 150.
pub(crate) const HEADER_BYTES_MAX: u32 = 1024;

/// Bounds of bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkLimits {
    /// Bytes of one slice, whatever the store says.
    pub slice_bytes_max: u64,
    /// Streams that one remote may have open towards us at a time.
    pub inbound_streams_per_peer: usize,
    /// Bytes that the open streams of one remote may announce together.
    pub inbound_bytes_per_peer: u64,
    /// Pushes to one remote that run at a time. More would only share the same link.
    pub push_streams_per_peer: usize,
    /// Pushes to one remote that wait for their turn.
    pub pushes_waiting_max: usize,
    /// How long a header or an acknowledgement may take to come.
    pub header_wait: Duration,
    /// How long 256 KiB may take: 30 s is 9 kB/s, slower than any link worth training over.
    pub piece_wait: Duration,
    /// Chunks of a state that are asked of one donor at a time: enough to hide a round trip.
    pub chunks_per_donor: usize,
    /// How long a state transfer may go without one good chunk.
    pub progress_wait: Duration,
}

impl Default for BulkLimits {
    fn default() -> Self {
        Self {
            slice_bytes_max: SLICE_BYTES_MAX,
            inbound_streams_per_peer: 32,
            inbound_bytes_per_peer: SLICE_BYTES_MAX,
            push_streams_per_peer: 4,
            pushes_waiting_max: 1024,
            header_wait: Duration::from_secs(10),
            piece_wait: Duration::from_secs(30),
            chunks_per_donor: 3,
            progress_wait: Duration::from_secs(60),
        }
    }
}
