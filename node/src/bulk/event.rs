//! What bulk transfers report, and the trait through which they report it.

use crate::bulk::BulkFault;
use futures::future::BoxFuture;
use murmurate_protocol::{Digest, FetchId, PeerId, PushOutcome, SliceId, SliceMeta};
use std::time::Duration;

/// A transfer that ended, or a peer that broke a rule of bulk streams.
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
        /// Hash of the bytes; only for aggregates.
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
        /// Header of a slice; `None` for a state.
        meta: Option<SliceMeta>,
        /// Hash of an aggregate's bytes.
        digest: Option<Digest>,
    },
    /// No donor gave all of it. Chunks of a state that did arrive stay in the store.
    FetchFailed {
        /// The slice or the state.
        what: FetchId,
    },
    /// A peer's bulk stream broke the rules, or broke off.
    Malformed {
        /// The peer.
        from: PeerId,
        /// What is wrong; [`BulkFault::is_misbehaviour`] tells whether the peer's score suffers.
        what: BulkFault,
    },
}

/// Takes what bulk transfers have to tell.
pub trait BulkEvents: Send + Sync {
    /// Takes an event that must not be lost; waits while there is no room for it.
    fn tell(&self, event: BulkEvent) -> BoxFuture<'_, ()>;

    /// Takes a measurement of a link, the rate in bytes a second. It may be dropped: another one follows.
    fn measured(&self, peer: PeerId, rtt: Duration, rate: u64);
}
