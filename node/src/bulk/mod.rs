//! Bulk transfer: slices and states between peers, over any byte stream.
//!
//! A push is one stream per slice: a bounded header, the bytes, one byte of acknowledgement. A
//! fetch requests an item by name and receives its bytes or "absent". A state comes in chunks from
//! several donors at once, and each chunk is checked against the state's root. This module does not
//! depend on libp2p: a `BulkTransport` opens streams, a `BulkStore` holds the bytes.
//!
//! The acknowledgement comes from the application, because an acknowledgement of the transport does
//! not tell whether the store has accepted the slice.

mod chunks;
mod core;
mod event;
mod fetch;
mod headers;
mod pipe;
mod push;
mod serve;
mod store;
mod transfers;
mod wire;

pub use chunks::{Manifest, chunk};
pub use core::BulkLimits;
pub(crate) use event::{BulkEvent, BulkEvents, BulkFault};
pub(crate) use pipe::{BulkTransport, Pipe, PipeReader, PipeWriter};
pub use pipe::{Served, Way};
pub use store::NoStore;
pub(crate) use store::{BulkStore, Refusal};

pub(crate) use core::Core;
pub(crate) use push::PushJob;
pub(crate) use transfers::Bulk;

#[cfg(test)]
pub(crate) mod tests;
