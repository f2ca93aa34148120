//! Faults of a remote on a bulk stream.

use murmurate_protocol::StateId;
use murmurate_protocol::wire::WireError;

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
    /// Whether an honest peer never causes this, even on a slow link. Only then does the peer's
    /// score suffer.
    pub const fn is_misbehaviour(&self) -> bool {
        !matches!(self, Self::Short { .. } | Self::Stalled { .. })
    }
}
