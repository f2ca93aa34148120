//! What a remote can do wrong on a bulk stream.

use murmurate_protocol::StateId;
use murmurate_protocol::wire::WireError;

/// A bulk stream that did not keep its word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BulkFault {
    /// The header is longer than any header.
    #[error("bulk header of {bytes} bytes is above the limit of {max}")]
    HeaderTooLong {
        /// Its length.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The header is no header.
    #[error("bulk header: {0}")]
    Header(#[source] WireError),
    /// The header announces more than may come.
    #[error("{bytes} bytes announced where at most {max} may come")]
    TooLong {
        /// Announced.
        bytes: u64,
        /// Allowed.
        max: u64,
    },
    /// Bytes came after the last one that was announced.
    #[error("more than the announced {of} bytes came")]
    Excess {
        /// Announced.
        of: u64,
    },
    /// The stream ended early. A sender that gave up does this too.
    #[error("{bytes} of {of} announced bytes came before the stream ended")]
    Short {
        /// Came.
        bytes: u64,
        /// Announced.
        of: u64,
    },
    /// Nothing came for too long. A slow link does this too.
    #[error("the stream stalled after {bytes} of {of} bytes")]
    Stalled {
        /// Came.
        bytes: u64,
        /// Announced.
        of: u64,
    },
    /// The list of chunk hashes is not the one that the state's root names.
    #[error("the manifest of the state that opens round {} is not what its root says", .state.round)]
    WrongManifest {
        /// The state.
        state: StateId,
    },
    /// A chunk does not have the hash that the manifest gives it.
    #[error("chunk {index} of the state that opens round {} has another hash", .state.round)]
    WrongChunk {
        /// The state.
        state: StateId,
        /// The chunk.
        index: u32,
    },
    /// The reply belongs to another kind of request.
    #[error("the reply does not answer the request")]
    OtherReply,
}

impl BulkFault {
    /// Whether no honest peer does this, however slow its link: only then is a score due.
    pub const fn is_misbehaviour(&self) -> bool {
        !matches!(self, Self::Short { .. } | Self::Stalled { .. })
    }
}
