//! Counters of inbound connection attempts by outcome.

use std::sync::atomic::{AtomicU64, Ordering};

/// Outcomes of inbound connection attempts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InboundCounts {
    /// Accepted connections.
    pub accepted: u64,
    /// Attempts that first had to prove their source address.
    pub retried: u64,
    /// Attempts refused because their source makes too many.
    pub too_often: u64,
    /// Handshakes that ended early because too many were in progress.
    pub too_many: u64,
    /// Handshakes that failed or timed out.
    pub failed: u64,
    /// Peers that proved their identity and were refused.
    pub turned_away: u64,
}

/// The live counters behind [`InboundCounts`].
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) too_often: AtomicU64,
    pub(super) too_many: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) turned_away: AtomicU64,
}

impl Counts {
    pub(super) fn read(&self) -> InboundCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        InboundCounts {
            accepted: get(&self.accepted),
            retried: get(&self.retried),
            too_often: get(&self.too_often),
            too_many: get(&self.too_many),
            failed: get(&self.failed),
            turned_away: get(&self.turned_away),
        }
    }
}

/// Adds one to a counter.
pub(super) fn count(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
