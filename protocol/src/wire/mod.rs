//! Control messages between peers. Tensors never pass through here: they travel as slices over
//! the bulk side, behind a header of their own.
//!
//! The messages of an exchange lie with its state machine, in `exchange`, and are named here too.

pub(crate) mod check;
mod codec;
mod frame;
mod membership;
mod message;
pub(crate) mod raw;
mod record;
mod version;

pub use crate::exchange::*;
pub use check::WireError;
pub(crate) use check::family;
pub use codec::{canonical, decode_limited, decode_value, encode_value};
pub use frame::{decode, decode_within, encode, encode_for, frame_bytes};
pub use membership::{Alive, Hello, MembershipMessage, Muster, Rates, Reason, Setting};
pub use message::{Message, Offer, TransferMessage};
pub use record::{PeerRecord, RecordFields};
pub use version::{WIRE_VERSION, WIRE_VERSION_OLDEST, WireVersion, WireVersions};
