//! Bulk transfer: slices and states between peers, over any byte stream.
//!
//! A push is one stream per slice: a bounded header, the bytes, one byte of acknowledgement. A
//! fetch requests an item by name and receives its bytes or "absent". A state comes in chunks from
//! several donors at once, and each chunk is checked against the state's root. This module does not
//! depend on libp2p: a [`BulkTransport`] opens streams, a [`BulkStore`] holds the bytes.
//!
//! The acknowledgement comes from the application, because an acknowledgement of the transport does
//! not tell whether the store has accepted the slice.

mod accept;
mod chunks;
mod connection;
mod core;
mod event;
mod fault;
mod fetch;
mod headers;
mod lane;
mod limits;
mod no_store;
mod pipe;
mod push;
mod remote;
mod serve;
mod state;
mod store;
mod transfers;
mod transport;
mod way;
mod wire;

pub use chunks::{Manifest, ManifestError, chunk};
pub use event::{BulkEvent, BulkEvents};
pub use fault::BulkFault;
pub use limits::BulkLimits;
pub use no_store::NoStore;
pub use pipe::{ByteStream, Pipe, PipeReader, PipeWriter};
pub use store::{BulkStore, Refusal};
pub use transport::BulkTransport;
pub use way::Way;

pub use connection::Served;
pub(crate) use core::Core;
pub(crate) use push::PushJob;
pub(crate) use transfers::Bulk;

#[cfg(test)]
pub(crate) mod tests;
