//! Control messages between peers. Tensors never pass through here: they travel as slices over
//! the bulk side, behind a header of their own.
//!
//! The messages of an exchange lie with its state machine, in `exchange`, and are named here too.

pub(crate) mod check;
mod codec;
mod error;
mod frame;
mod membership;
mod message;
mod rates;
pub(crate) mod raw;
mod record;
mod settings;
mod transfer;
mod version;

pub use crate::exchange::{
    AgreedMessage, Ballot, CellsMessage, CenterMessage, ExchangeMessage, FormingMessage,
    FragmentMessage, GridMessage, Held, Member, MergeSide, Pledge, Promise, PullMessage, Said,
    Scoped, Seat, Seated, ShardPlan, ShardVersion, SignedGroup, SignedMessage, VoteCertificate,
    Whereabouts, value_of,
};
pub use codec::{canonical, decode_limited, decode_value, encode_value};
pub use error::WireError;
pub use frame::{decode, decode_within, encode, encode_for, frame_bytes};
pub use membership::{Hello, MembershipMessage, Muster, Reason};
pub use message::Message;
pub use rates::Rates;
pub use record::{PeerRecord, RecordFields};
pub use settings::Setting;
pub use transfer::TransferMessage;
pub use version::{WIRE_VERSION, WIRE_VERSION_OLDEST, WireVersion, WireVersions};
