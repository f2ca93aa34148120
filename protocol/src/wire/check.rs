//! Why bytes from the network are not a message, and the checks that say so.

use crate::FragmentId;
use crate::limits::{BALLOTS_MAX, FRAGMENTS_MAX, PARTS_MAX};
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

/// The same answer for every check: which field is out of range.
pub(crate) fn ok(condition: bool, field: &str) -> Result<(), WireError> {
    if condition {
        Ok(())
    } else {
        Err(WireError::OutOfRange {
            field: field.to_owned(),
        })
    }
}

pub(crate) fn weight(weight: f64) -> Result<(), WireError> {
    ok(weight_ok(weight), "weight")
}

/// Weights that sums of weights can take.
pub(crate) fn weight_ok(weight: f64) -> bool {
    weight.is_finite() && (0.0..=1e18).contains(&weight)
}

pub(crate) fn fragment(fragment: FragmentId) -> Result<(), WireError> {
    ok(usize::from(fragment.0) < FRAGMENTS_MAX, "fragment")
}

pub(crate) fn ballot(number: u8) -> Result<(), WireError> {
    ok(number < BALLOTS_MAX, "ballot")
}

pub(crate) fn shards(count: usize) -> Result<(), WireError> {
    ok(count <= PARTS_MAX, "shards")
}

/// What came from a remote is in order, or the rule that it broke.
pub(crate) type Checked = Result<(), PeerError>;

/// A rule that a remote broke. Only the remote's score has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A message or slice that makes no sense from this peer at this time.
    #[error("{what}")]
    Unexpected {
        /// In words.
        what: String,
    },
    /// A message of an exchange that this run does not use.
    #[error("message `{message}` does not belong to the exchange of this run, {exchange}")]
    ForeignMessage {
        /// The message's name.
        message: &'static str,
        /// This run's exchange.
        exchange: &'static str,
    },
    /// A slice whose tag belongs to another exchange, or to another part of this one.
    #[error("a slice with tag `{tag}` does not fit the exchange of this run, {exchange}")]
    ForeignTag {
        /// The tag's name.
        tag: &'static str,
        /// This run's exchange.
        exchange: &'static str,
    },
    /// Bytes that are not a message.
    #[error("malformed message: {0}")]
    Malformed(WireError),
}

impl PeerError {
    pub(crate) fn unexpected(what: impl Into<String>) -> Self {
        let what = what.into();
        Self::Unexpected { what }
    }
}

/// Makes a family's message of a message in one of these variants.
macro_rules! family {
    ($family:ident: $($variant:ident($message:ident)),+) => {$(
        impl From<$message> for $family {
            fn from(message: $message) -> Self {
                Self::$variant(message)
            }
        }
    )+};
}
pub(crate) use family;
