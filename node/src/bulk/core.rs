//! Parts that all transfers of a daemon share: store, transport, bounds, and the receiver of results; and those that
//! the transfers with one linked peer share.

use super::{BulkEvent, BulkEvents, BulkStore, BulkTransport};
use crate::traffic::{Counters, LinkMeters, Tally};
use murmurate_net::congestion::{MaxRate, Throttle};
use murmurate_protocol::PeerId;
use murmurate_protocol::limits::SLICE_BYTES_MAX;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

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
    /// Chunks of a state that are requested from one donor at a time: enough to hide a round trip. Of one that has
    /// sent none quickly it is one, or all would take so long that none comes in time.
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

/// Parts that all transfers share.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn BulkStore>,
    /// Opens streams to peers.
    pub(crate) transport: Arc<dyn BulkTransport>,
    pub(crate) rate: MaxRate,
    /// The bounds on streams, sizes and waits.
    pub(crate) limits: BulkLimits,
    pub(crate) events: Box<dyn BulkEvents>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) meters: Arc<LinkMeters>,
}

impl Core {
    /// Reports a result that must not be lost. Waits while the driver's queue is full.
    pub(crate) async fn tell(&self, event: BulkEvent) {
        self.events.tell(event).await;
    }

    pub(crate) fn measured_push(&self, peer: PeerId, bytes: u64, took: Duration) {
        if let Some((rtt, rate)) = self.meters.pushed(peer, bytes, took) {
            self.events.measured(peer, rtt, rate);
        }
    }
}

/// One linked peer. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) peer: PeerId,
    /// Permits for streams that the peer may open.
    pub(crate) streams: Arc<Semaphore>,
    /// Limits the sending rate to the peer.
    pub(crate) throttle: Throttle,
    /// Counts the peer's bytes.
    pub(crate) tally: Tally,
    announced: Arc<AtomicU64>,
    /// When it last acknowledged a push.
    delivered: Arc<Mutex<Option<Instant>>>,
}

impl Remote {
    /// Starts with no transfer in progress.
    pub(crate) fn new(peer: PeerId, streams: usize, rate: &MaxRate, counters: &Counters) -> Self {
        Self {
            peer,
            streams: Arc::new(Semaphore::new(streams)),
            throttle: rate.throttle(),
            tally: counters.of(peer),
            announced: Arc::new(AtomicU64::new(0)),
            delivered: Arc::default(),
        }
    }

    /// Reserves announced bytes until the guard is dropped; `None` if the total would exceed `max`.
    pub(crate) fn announce(&self, bytes: u64, max: u64) -> Option<Announced> {
        let add = |open: u64| open.checked_add(bytes).filter(|sum| *sum <= max);
        self.announced
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()?;
        Some(Announced {
            bytes,
            open: Arc::clone(&self.announced),
        })
    }

    /// Records that a push which began at `began` was acknowledged at `now`. Returns how long the link was busy with
    /// it: pushes overlap, so the time counts from the end of the previous push if that is later.
    pub(crate) fn delivered(&self, began: Instant, now: Instant) -> Duration {
        let mut last = self
            .delivered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let from = last.replace(now).map_or(began, |last| last.max(began));
        now.saturating_duration_since(from)
    }
}

pub(crate) struct Announced {
    bytes: u64,
    open: Arc<AtomicU64>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.open.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_announces_is_bounded_and_given_back() {
        let peer = PeerId::from_bytes([1; 32]);
        let remote = Remote::new(peer, 1, &MaxRate::default(), &Counters::default());
        let first = remote.announce(60, 100);
        assert!(first.is_some() && remote.announce(41, 100).is_none());
        assert!(remote.announce(u64::MAX, u64::MAX).is_none(), "no overflow");
        drop(first);
        assert!(remote.announce(100, 100).is_some());
    }

    #[test]
    fn overlapping_pushes_share_the_time() {
        let peer = PeerId::from_bytes([1; 32]);
        let remote = Remote::new(peer, 1, &MaxRate::default(), &Counters::default());
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(remote.delivered(began, began + second), second);
        assert_eq!(
            remote.delivered(began, began + 2 * second),
            second,
            "not two"
        );
    }
}
