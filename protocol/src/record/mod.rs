//! Records: every input of one peer with its time, so that its outputs can be repeated to the bit.
//!
//! Pure like the rest of the crate: a [`Recorder`] makes entries, a [`Framer`] makes bytes of them,
//! a [`RecordReader`] takes bytes in and gives entries out, and a [`Replay`] feeds them to a fresh
//! [`Peer`](crate::Peer). Where the bytes lie is the driver's business.
//!
//! # Layout
//! ```text
//! MURMREC\n | record version u32 | length u8, binary's version | entry, entry, ...
//! entry = length u32 | check of the length [4] | kind u8, body | check of the body [8]
//! ```
//! Integers are little-endian. Checks are a BLAKE3 chain that begins with the opening bytes: no byte
//! can change, and no entry can go missing but at the end, without being noticed. A record that
//! stops in the middle of an entry (a killed daemon, a full disk) reads up to its last whole one.

mod entry;
mod reader;

pub use entry::{Entry, EntryBytes, Framer, OutputHash, RecordError, RecordHeader, Recorder};
pub use reader::{Difference, RecordReader, Replay};

/// The version of a record's layout. Raised with every change of it.
pub const RECORD_VERSION: u32 = 12;

/// What every record opens with.
const MAGIC: [u8; 8] = *b"MURMREC\n";
