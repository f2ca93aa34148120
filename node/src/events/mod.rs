//! The event log of a daemon: what happened, one JSON object a line, in `events.jsonl` of the daemon's
//! directory. `docs/events.md` describes the fields.
//!
//! The driver never waits for the disk: a bounded queue leads to a writer thread, and events that find
//! it full are counted and dropped. The last events are also kept in memory, for `/api/v1/events`.

mod chrome;
mod entry;
mod log;
mod merge;
mod read;
mod told;
mod words;

pub use chrome::chrome_trace;
pub use entry::{Entry, KINDS, Kind, VERSION};
pub(crate) use log::EventLog;
pub use log::{Line, OF_KIND_MAX, Recent};
pub use merge::merge;
pub(crate) use read::Tail;
pub use read::{LogEnd, NAME, Skipped, read_dir, read_file};
pub(crate) use told::told;
pub use words::{Names, unix_s, utc};

#[cfg(test)]
mod tests;
