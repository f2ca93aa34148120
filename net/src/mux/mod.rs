//! Streams over one reliable byte stream, for bulk data.
//!
//! TLS over TCP is faster than QUIC on a clean link and has one stream. This module divides it into
//! many, with what bulk transfers need of QUIC's streams: either end opens them, they end or are
//! given up separately, a receiver that does not read one does not stop the others, and the most
//! urgent goes first. TCP delivers in order, so a frame has at most [`FRAME_BYTES_MAX`], and a more
//! urgent stream waits for one frame at most.
//!
//! # Memory
//!
//! A remote controls the bytes that it sends. It may have [`STREAMS_MAX`] streams open, and send
//! [`WINDOW_BYTES`] on each before the bytes are read. All unread bytes of a session are at most
//! [`UNREAD_BYTES_MAX`]: then nothing more is read until some are taken. What waits to be sent is at
//! most [`QUEUE_BYTES_MAX`] and one piece for each stream.

mod error;
mod frame;
mod receive;
mod send;
mod session;
mod shared;
mod state;
mod stream;
mod tasks;

pub use error::MuxError;
pub use receive::Receiver;
pub use send::Sender;
pub use session::{Session, Side, Volume};

/// The largest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// Streams that an end may have open.
pub const STREAMS_MAX: usize = 256;

/// Bytes of one stream that may be sent before they are read.
pub const WINDOW_BYTES: u64 = 8 << 20;

/// Bytes of all streams of a session that wait to be read.
pub const UNREAD_BYTES_MAX: u64 = 128 << 20;

/// Bytes of a stream that wait to be sent before a writer waits.
pub const QUEUE_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
