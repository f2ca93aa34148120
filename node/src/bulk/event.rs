//! Events of bulk transfers, and the trait that receives them.

use crate::bulk::BulkFault;
use futures::future::BoxFuture;
use murmurate_protocol::{Digest, FetchId, PeerId, PushOutcome, SliceId, SliceMeta};
use std::time::Duration;

/// The end of a transfer, or a violation of the protocol on a bulk stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BulkEvent {
    /// A peer pushed a slice to this one; the slice is in the store.
    Arrived {
        /// The sender.
        from: PeerId,
        /// The slice's name.
        slice: SliceId,
        /// The slice's header.
        meta: SliceMeta,
        /// Hash of the bytes; `None` for a contribution.
        digest: Option<Digest>,
    },
    /// A push ended.
    Pushed {
        /// The receiver.
        to: PeerId,
        /// The slice.
        slice: SliceId,
        /// How the push ended.
        outcome: PushOutcome,
    },
    /// A fetched slice or state is in the store.
    Fetched {
        /// The slice or the state.
        what: FetchId,
        /// The header of a slice; `None` for a state.
        meta: Option<SliceMeta>,
        /// Hash of an aggregate's bytes; `None` for a contribution or a state.
        digest: Option<Digest>,
    },
    /// No donor delivered it completely. The chunks of a state that arrived stay in the store.
    FetchFailed {
        /// The slice or the state.
        what: FetchId,
    },
    /// A peer's bulk stream violated the protocol or broke off.
    Malformed {
        /// The peer.
        from: PeerId,
        /// The fault. [`BulkFault::is_misbehaviour`] says whether it counts against the peer's
        /// score.
        what: BulkFault,
    },
}

/// Receives the events of bulk transfers.
pub trait BulkEvents: Send + Sync {
    /// Accepts an event that must not be lost. Waits while the queue is full.
    fn tell(&self, event: BulkEvent) -> BoxFuture<'_, ()>;

    /// Accepts a measurement of a link; `rate` is in bytes per second. It may be dropped, since
    /// others follow.
    fn measured(&self, peer: PeerId, rtt: Duration, rate: u64);
}
