//! Events of bulk transfers, and the trait that receives them.

use futures::future::BoxFuture;
use murmurate_protocol::wire::WireError;
use murmurate_protocol::{Digest, FetchId, PeerId, PushOutcome, SliceId, SliceMeta, StateId};
use std::time::Duration;

/// The end of a transfer, or a violation of the protocol on a bulk stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BulkEvent {
    /// A peer pushed a slice to this one; the slice is in the store.
    Arrived {
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        /// Hash of the bytes; `None` for a contribution.
        digest: Option<Digest>,
    },
    Pushed {
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    },
    /// A fetched slice or state is in the store.
    Fetched {
        what: FetchId,
        /// The header of a slice; `None` for a state.
        meta: Option<SliceMeta>,
        /// Hash of an aggregate's bytes; `None` for a contribution or a state.
        digest: Option<Digest>,
    },
    /// No donor delivered it completely. The chunks of a state that arrived stay in the store.
    FetchFailed { what: FetchId },
    /// A peer's bulk stream violated the protocol or broke off.
    Malformed {
        from: PeerId,
        /// The fault. [`BulkFault::is_misbehaviour`] says whether it counts against the peer's score.
        what: BulkFault,
    },
}

pub(crate) trait BulkEvents: Send + Sync {
    /// Accepts an event that must not be lost. Waits while the queue is full.
    fn tell(&self, event: BulkEvent) -> BoxFuture<'_, ()>;

    /// Accepts a measurement of a link; `rate` is in bytes per second. It may be dropped, since others follow.
    fn measured(&self, peer: PeerId, rtt: Duration, rate: u64);
}

/// A bulk stream that violated the protocol or broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BulkFault {
    /// The length of the header exceeds the limit.
    #[error("bulk header of {bytes} bytes is above the limit of {max}")]
    HeaderTooLong { bytes: u64, max: u64 },
    #[error("bulk header: {0}")]
    Header(#[source] WireError),
    /// The header announces more bytes than allowed.
    #[error("{bytes} bytes announced, at most {max} are allowed")]
    TooLong { bytes: u64, max: u64 },
    /// The slice belongs to another peer.
    #[error("a slice pushed in the name of another peer")]
    OtherName,
    /// More bytes came than were announced.
    #[error("more than the announced {of} bytes came")]
    Excess { of: u64 },
    /// The stream ended early. A sender that gives up a push also causes this.
    #[error("{bytes} of {of} announced bytes came before the stream ended")]
    Short { bytes: u64, of: u64 },
    /// No bytes arrived for too long. A slow link also causes this.
    #[error("the stream stalled after {bytes} of {of} bytes")]
    Stalled { bytes: u64, of: u64 },
    /// The hash of the manifest differs from the state's root.
    #[error("the hash of the manifest differs from the root of the state of round {}", .state.round)]
    WrongManifest { state: StateId },
    /// The hash of a chunk differs from its hash in the manifest.
    #[error("the hash of chunk {index} differs from the manifest of the state of round {}", .state.round)]
    WrongChunk { state: StateId, index: u32 },
    /// The reply answers another kind of request.
    #[error("the reply does not answer the request")]
    OtherReply,
}

impl BulkFault {
    /// True for what an honest peer never causes, even on a slow link. Only then does the peer's score suffer.
    pub const fn is_misbehaviour(&self) -> bool {
        !matches!(self, Self::Short { .. } | Self::Stalled { .. })
    }
}
