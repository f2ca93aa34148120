//! The bounds of bulk transfer, with defaults and reasons.

use murmurate_protocol::limits::SLICE_BYTES_MAX;
use std::time::Duration;

/// Bytes that are read or written between two checks of the clock. Larger pieces save little;
/// smaller ones need a timer each.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Maximum size of an encoded request or reply header, bytes. The largest has fewer than 150.
pub(crate) const HEADER_BYTES_MAX: u32 = 1024;

/// Bounds of bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkLimits {
    /// Maximum size of a slice in bytes. It holds in addition to the limits of the store.
    pub slice_bytes_max: u64,
    /// Streams that one remote may have open at a time.
    pub inbound_streams_per_peer: usize,
    /// Bytes that the open streams of one remote may announce in total.
    pub inbound_bytes_per_peer: u64,
    /// Pushes to one remote that run at the same time. More would only share the link.
    pub push_streams_per_peer: usize,
    /// Pushes to one remote that may wait for their turn.
    pub pushes_waiting_max: usize,
    /// Time allowed for a header or an acknowledgement to arrive.
    pub header_wait: Duration,
    /// Time allowed for 256 KiB. 30 s is 9 kB/s, which is too slow for training.
    pub piece_wait: Duration,
    /// Chunks of a state that are requested from one donor at a time: enough to hide a round trip.
    pub chunks_per_donor: usize,
    /// Time allowed for a state transfer without one correct chunk.
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
