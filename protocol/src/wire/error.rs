//! Why bytes from the network are not a message.

use crate::wire::WireVersions;
use serde::{Deserialize, Serialize};

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Nothing at all.
    #[error("empty frame")]
    Empty,
    /// Another version of the protocol.
    #[error("wire version {theirs} (this build speaks {})", WireVersions::OURS)]
    Version {
        /// The version byte that was found.
        theirs: u8,
    },
    /// A kind of frame that this version does not know.
    #[error("frame of kind {kind}, which this version does not know")]
    Kind {
        /// The kind byte that was found.
        kind: u8,
    },
    /// Longer than a frame may be.
    #[error("frame of {bytes} bytes is above the limit of {max}")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// Not the encoding of any message.
    #[error("not a message: {0}")]
    Undecodable(String),
    /// A field is out of its range.
    #[error("field `{field}` is out of range")]
    OutOfRange {
        /// The field.
        field: String,
    },
    /// Bytes are left after the message.
    #[error("{bytes} bytes are left after the message")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A signature is not by the peer that it names.
    #[error("a signature does not verify")]
    Signature,
}
