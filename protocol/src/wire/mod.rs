//! Control messages between peers. Tensors never pass through here: they travel as slices over
//! the bulk side, behind a header of their own.

mod agreed;
mod ballot;
mod center;
mod check;
mod codec;
mod membership;
mod message;
mod pull;
mod record;
mod transfer;

pub use agreed::{AgreedMessage, FormingMessage, FragmentMessage, Member, Promise, Scoped};
pub use ballot::{Ballot, Held, ShardPlan, ShardVersion};
pub use center::CenterMessage;
pub use codec::{canonical, decode, decode_value, encode, encode_value};
pub use membership::{Hello, MembershipMessage, Muster, Reason};
pub use message::{ExchangeMessage, Message};
pub use pull::PullMessage;
pub use record::PeerRecord;
pub use transfer::TransferMessage;

use serde::{Deserialize, Serialize};

/// The version byte that opens every frame. Raised with every change of a message's layout.
pub const WIRE_VERSION: u8 = 3;

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Nothing at all.
    #[error("empty frame")]
    Empty,
    /// Another version of the protocol.
    #[error("wire version {theirs} (this build speaks {WIRE_VERSION})")]
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
    /// A record's signature is not by the peer it names.
    #[error("a peer record's signature does not verify")]
    Signature,
}
