//! What every transfer of a daemon shares: the store, the way to peers, the bounds, and where results go.

use crate::bulk::{BulkEvent, BulkEvents, BulkLimits, BulkStore, BulkTransport};
use crate::traffic::{Counters, LinkMeters};
use murmurate_net::congestion::MaxRate;
use murmurate_protocol::PeerId;
use std::sync::Arc;
use std::time::Duration;

/// What every transfer needs.
pub(crate) struct Core {
    /// Where bytes live.
    pub(crate) store: Arc<dyn BulkStore>,
    /// Opens streams to peers.
    pub(crate) transport: Arc<dyn BulkTransport>,
    /// The limits on the rate of what is sent.
    pub(crate) rate: MaxRate,
    /// The bounds on streams, sizes and waits.
    pub(crate) limits: BulkLimits,
    /// Where results go.
    pub(crate) events: Box<dyn BulkEvents>,
    /// Where bytes are counted.
    pub(crate) counters: Arc<Counters>,
    /// Where rates are measured.
    pub(crate) meters: Arc<LinkMeters>,
}

impl Core {
    /// Reports a result that must not be lost; waits while the driver is behind.
    pub(crate) async fn tell(&self, event: BulkEvent) {
        self.events.tell(event).await;
    }

    /// Measures a delivered push.
    pub(crate) fn measured_push(&self, peer: PeerId, bytes: u64, took: Duration) {
        if let Some((rtt, rate)) = self.meters.pushed(peer, bytes, took) {
            self.events.measured(peer, rtt, rate);
        }
    }
}
