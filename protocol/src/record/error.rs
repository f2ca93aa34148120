//! Why bytes are not a record, or not one that this build can repeat.

use crate::PlanError;
use crate::limits::RECORD_ENTRY_BYTES_MAX;
use crate::record::RECORD_VERSION;
use crate::wire::WireError;

/// Why bytes are not a record, or not one that this build can repeat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It does not open as records do.
    #[error("not a record (`murmurate run --record FILE` makes one)")]
    NotARecord,
    /// Another layout.
    #[error(
        "record version {theirs}, and this build reads {RECORD_VERSION}: replay it with the \
         version of murmurate that made it"
    )]
    OtherRecordVersion {
        /// The version that was found.
        theirs: u32,
    },
    /// Another binary: it may decide otherwise, and its messages may have another layout.
    #[error(
        "made by murmurate {theirs}, and this is {ours}: replay it with the version that made it"
    )]
    OtherBinary {
        /// The version that was found.
        theirs: String,
        /// The reader's version.
        ours: String,
    },
    /// Bytes changed since they were written.
    #[error("damaged at byte {at}: {what} does not match its check")]
    Damaged {
        /// Where the entry begins.
        at: u64,
        /// Its length or its body.
        what: &'static str,
    },
    /// An entry above the limit.
    #[error("an entry of {bytes} bytes is above the limit of {RECORD_ENTRY_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// The bytes of an entry do not decode.
    #[error("the entry at byte {at} cannot be read: {source}")]
    Undecodable {
        /// Where it begins.
        at: u64,
        /// The error of its decoding.
        #[source]
        source: WireError,
    },
    /// An entry of an unknown kind.
    #[error("the entry at byte {at} is of the unknown kind {kind}")]
    UnknownKind {
        /// Where it begins.
        at: u64,
        /// Its kind.
        kind: u8,
    },
    /// Entries that no driver makes.
    #[error("the entry at byte {at} breaks a rule of drivers: {what}")]
    Impossible {
        /// Where it begins.
        at: u64,
        /// Which.
        what: &'static str,
    },
    /// Bytes after the last entry.
    #[error("bytes follow the record's end at byte {at}")]
    Trailing {
        /// Where they begin.
        at: u64,
    },
    /// Its plan cannot work.
    #[error("its plan cannot be followed: {0}")]
    Plan(#[from] PlanError),
    /// A plan of neighbours without the topology that it needs, or with one that is too long.
    #[error("a gossip plan needs a topology, and the record has none that this build knows")]
    Topology,
}
