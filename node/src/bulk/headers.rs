//! The headers of bulk streams. This file depends on the protocol only, so that a fuzz target can read
//! it alone.

use murmurate_protocol::{SliceId, SliceMeta, StateId};
use serde::{Deserialize, Serialize};

/// A request of the end that opened the stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Pushes a slice: `meta.bytes` bytes follow.
    Push {
        slice: SliceId,
        meta: SliceMeta,
    },
    Slice(SliceId),
    /// Requests the hashes of a state's chunks.
    Manifest(StateId),
    Chunk {
        state: StateId,
        index: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// A slice: `meta.bytes` bytes follow.
    Slice(SliceMeta),
    /// A manifest or a chunk follows.
    Blob {
        bytes: u64,
    },
    Absent,
}
