//! Bulk transfer: slices and states between peers, over any byte stream.
//!
//! A push is one stream per slice: a bounded header, the bytes, one byte of acknowledgement. A
//! fetch asks by name and gets the bytes or "not here"; a state comes in chunks from several
//! donors at once, each chunk checked against the state's root. Nothing here knows libp2p: a
//! [`BulkTransport`] opens streams, a [`BulkStore`] holds the bytes.
//!
//! The byte of acknowledgement is the application's: "delivered" means that the store has taken the slice,
//! which no acknowledgement of a transport says.

mod accept;
mod chunks;
mod core;
mod event;
mod fault;
mod fetch;
mod lane;
mod limits;
mod pipe;
mod push;
mod remote;
mod serve;
mod state;
mod store;
mod transfers;
mod transport;
mod wire;

pub use chunks::{Manifest, ManifestError, chunk, state_id_of};
pub use event::{BulkEvent, BulkEvents};
pub use fault::BulkFault;
pub use limits::BulkLimits;
pub use pipe::{ByteStream, Pipe, PipeReader, PipeWriter};
pub use store::{BulkStore, Refusal};
pub use transport::BulkTransport;

pub(crate) use core::Core;
pub(crate) use push::PushJob;
pub(crate) use transfers::Bulk;

#[cfg(test)]
pub(crate) mod tests;
