//! Parts that all transfers of a daemon share: store, transport, bounds, and the receiver of
//! results.

use crate::bulk::{BulkEvent, BulkEvents, BulkLimits, BulkStore, BulkTransport};
use crate::traffic::{Counters, LinkMeters};
use murmurate_net::congestion::MaxRate;
use murmurate_protocol::PeerId;
use std::sync::Arc;
use std::time::Duration;

/// Parts that all transfers share.
pub(crate) struct Core {
    /// Holds the bytes.
    pub(crate) store: Arc<dyn BulkStore>,
    /// Opens streams to peers.
    pub(crate) transport: Arc<dyn BulkTransport>,
    /// The limits on the sending rate.
    pub(crate) rate: MaxRate,
    /// The bounds on streams, sizes and waits.
    pub(crate) limits: BulkLimits,
    /// Receives results.
    pub(crate) events: Box<dyn BulkEvents>,
    /// Counts bytes.
    pub(crate) counters: Arc<Counters>,
    /// Measures the rates of links.
    pub(crate) meters: Arc<LinkMeters>,
}

impl Core {
    /// Reports a result that must not be lost. Waits while the driver's queue is full.
    pub(crate) async fn tell(&self, event: BulkEvent) {
        self.events.tell(event).await;
    }

    /// Records the rate of a delivered push.
    pub(crate) fn measured_push(&self, peer: PeerId, bytes: u64, took: Duration) {
        if let Some((rtt, rate)) = self.meters.pushed(peer, bytes, took) {
            self.events.measured(peer, rtt, rate);
        }
    }
}
