//! The headers of bulk streams. This file depends on the protocol only, so that a fuzz target can read
//! it alone.

use murmurate_protocol::{SliceId, SliceMeta, StateId};
use serde::{Deserialize, Serialize};

/// A request of the end that opened the stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Pushes a slice: `meta.bytes` bytes follow.
    Push {
        /// The slice's name.
        slice: SliceId,
        /// The slice's header.
        meta: SliceMeta,
    },
    /// Requests a slice.
    Slice(SliceId),
    /// Requests the hashes of a state's chunks.
    Manifest(StateId),
    /// Requests one chunk of a state.
    Chunk {
        /// The state.
        state: StateId,
        /// Index of the chunk.
        index: u32,
    },
}

/// The header of the reply to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// A slice: `meta.bytes` bytes follow.
    Slice(SliceMeta),
    /// A manifest or a chunk follows.
    Blob {
        /// Its size in bytes.
        bytes: u64,
    },
    /// The remote does not have it.
    Absent,
}
