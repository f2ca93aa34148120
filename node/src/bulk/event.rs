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

/// A bulk stream that violated the protocol or broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BulkFault {
    /// The length of the header exceeds the limit.
    #[error("bulk header of {bytes} bytes is above the limit of {max}")]
    HeaderTooLong {
        /// Length in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The header cannot be decoded.
    #[error("bulk header: {0}")]
    Header(#[source] WireError),
    /// The header announces more bytes than allowed.
    #[error("{bytes} bytes announced, at most {max} are allowed")]
    TooLong {
        /// Announced bytes.
        bytes: u64,
        /// Allowed bytes.
        max: u64,
    },
    /// The slice belongs to another peer.
    #[error("a slice pushed in the name of another peer")]
    OtherName,
    /// More bytes came than were announced.
    #[error("more than the announced {of} bytes came")]
    Excess {
        /// Announced bytes.
        of: u64,
    },
    /// The stream ended early. A sender that gives up a push also causes this.
    #[error("{bytes} of {of} announced bytes came before the stream ended")]
    Short {
        /// Received bytes.
        bytes: u64,
        /// Announced bytes.
        of: u64,
    },
    /// No bytes arrived for too long. A slow link also causes this.
    #[error("the stream stalled after {bytes} of {of} bytes")]
    Stalled {
        /// Received bytes.
        bytes: u64,
        /// Announced bytes.
        of: u64,
    },
    /// The hash of the manifest differs from the state's root.
    #[error("the hash of the manifest differs from the root of the state of round {}", .state.round)]
    WrongManifest {
        /// The state.
        state: StateId,
    },
    /// The hash of a chunk differs from its hash in the manifest.
    #[error("the hash of chunk {index} differs from the manifest of the state of round {}", .state.round)]
    WrongChunk {
        /// The state.
        state: StateId,
        /// Index of the chunk.
        index: u32,
    },
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
