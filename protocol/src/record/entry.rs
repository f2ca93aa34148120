//! The entries of a record, and their bytes without checks. The first one is a header: all that a peer is made
//! from.

use crate::limits::{
    RECORD_BINARY_BYTES_MAX, RECORD_ENTRY_BYTES_MAX, RECORD_REASON_BYTES_MAX,
    RECORD_TOPOLOGY_BYTES_MAX,
};
use crate::record::{MAGIC, RECORD_VERSION};
use crate::wire::{WireError, decode_limited, encode_value};
use crate::{Digest, Input, Output, PeerConfig, Plan, PlanError, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// All that a peer is made from. The snapshot that it starts from is in its first input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The plan.
    pub plan: Plan,
    /// The peer's own settings, its seed included.
    pub config: PeerConfig,
    /// The topology as the driver writes it, opaque here, where neighbours mix. Its seed is the
    /// peer's.
    pub topology: Option<Vec<u8>>,
}

impl RecordHeader {
    pub(super) fn check(&self) -> Result<(), RecordError> {
        self.plan.validate()?;
        let topology = self.topology.as_ref();
        let lacking = self.plan.exchange.has_neighbours() && topology.is_none();
        if lacking || topology.is_some_and(|bytes| bytes.len() > RECORD_TOPOLOGY_BYTES_MAX) {
            Err(RecordError::Topology)
        } else {
            Ok(())
        }
    }
}

/// Kinds of entries, as they open their bytes.
const HEADER: u8 = 0;
const INPUT: u8 = 1;
const END: u8 = 2;
const CUT: u8 = 3;

/// One entry of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The first one.
    Header(Box<RecordHeader>),
    /// Something that went into the peer.
    Input {
        /// When, as the driver told it.
        at: Time,
        /// [`OutputHash::mark`](crate::record::OutputHash::mark) of all outputs before it.
        mark: u64,
        /// What.
        input: Box<Input>,
    },
    /// The driver ended, and with it the record.
    End {
        /// Inputs in all.
        inputs: u64,
        /// Outputs in all.
        outputs: u64,
        /// Hash of all outputs.
        digest: Digest,
    },
    /// The record ends here, but the peer continued.
    Cut {
        /// Inputs in the record.
        inputs: u64,
        /// Why, in words.
        reason: String,
    },
}

/// The bytes of one entry, within the limit and without checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryBytes(Vec<u8>);

impl EntryBytes {
    pub(super) fn header(header: &RecordHeader) -> Result<Self, RecordError> {
        Self::new(HEADER, header)
    }

    pub(super) fn input(at: Time, mark: u64, input: &Input) -> Result<Self, RecordError> {
        Self::new(INPUT, &(at, mark, input))
    }

    pub(super) fn end(inputs: u64, outputs: u64, digest: Digest) -> Result<Self, RecordError> {
        Self::new(END, &(inputs, outputs, digest))
    }

    pub(super) fn cut(inputs: u64, reason: &str) -> Result<Self, RecordError> {
        let mut end = reason.len().min(RECORD_REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Self::new(CUT, &(inputs, &reason[..end]))
    }

    fn new<T: Serialize>(kind: u8, body: &T) -> Result<Self, RecordError> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&encode_value(body));
        if bytes.len() <= RECORD_ENTRY_BYTES_MAX {
            Ok(Self(bytes))
        } else {
            Err(RecordError::TooLong {
                bytes: bytes.len() as u64,
            })
        }
    }

    /// Returns `true` if it is the one that ends a record with its driver.
    pub fn is_end(&self) -> bool {
        self.0.first() == Some(&END)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Entry {
    /// Reads the bytes of the entry at `at`; the checks have been compared already.
    pub(super) fn decode(at: u64, bytes: &[u8]) -> Result<Self, RecordError> {
        fn value<T: DeserializeOwned>(at: u64, body: &[u8]) -> Result<T, RecordError> {
            let body = decode_limited::<_, RECORD_ENTRY_BYTES_MAX>(body);
            body.map_err(|source| RecordError::Undecodable { at, source })
        }
        let (kind, body) = bytes.split_first().ok_or(RecordError::Impossible {
            at,
            what: "it is empty",
        })?;
        Ok(match *kind {
            HEADER => Self::Header(value(at, body)?),
            INPUT => {
                let (time, mark, input): (Time, u64, Box<Input>) = value(at, body)?;
                if let Input::Received { message, .. } = input.as_ref() {
                    let check = message.check();
                    check.map_err(|source| RecordError::Undecodable { at, source })?;
                }
                Self::Input {
                    at: time,
                    mark,
                    input,
                }
            }
            END => {
                let (inputs, outputs, digest) = value(at, body)?;
                Self::End {
                    inputs,
                    outputs,
                    digest,
                }
            }
            CUT => {
                let (inputs, reason) = value(at, body)?;
                Self::Cut { inputs, reason }
            }
            kind => return Err(RecordError::UnknownKind { at, kind }),
        })
    }
}

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

/// From a peer to a record's bytes: the recorder makes entries and a running hash over outputs, the framer puts a
/// chain of checks around them.
///
/// Follows a peer: told of every input before it is handled and of every output after it was
/// taken, it makes the record's entries.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    outputs: OutputHash,
    inputs: u64,
}

impl Recorder {
    /// Follows a peer from its first input on.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry of an input that is about to be handled at `at`.
    ///
    /// # Errors
    /// If it is above the limit of an entry: the record cannot continue.
    pub fn input(&mut self, at: Time, input: &Input) -> Result<EntryBytes, RecordError> {
        self.inputs += 1;
        EntryBytes::input(at, self.outputs.mark(), input)
    }

    /// An output was taken from the peer.
    pub fn output(&mut self, output: &Output) {
        self.outputs.add(output);
    }

    /// The entry that ends the record.
    ///
    /// # Errors
    /// Never: three numbers are below the limit of an entry.
    pub fn end(&self) -> Result<EntryBytes, RecordError> {
        EntryBytes::end(self.inputs, self.outputs.count(), self.outputs.digest())
    }
}

/// BLAKE3 over the canonical bytes of every output, each after its length. Equal hashes mean equal
/// outputs in the same order, floats to the bit.
#[derive(Clone, Debug, Default)]
pub struct OutputHash {
    hasher: blake3::Hasher,
    count: u64,
}

impl OutputHash {
    /// Takes the next output in.
    pub fn add(&mut self, output: &Output) {
        let bytes = encode_value(output);
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(&bytes);
        self.count += 1;
    }

    /// How many there were.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The hash so far.
    pub fn digest(&self) -> Digest {
        Digest::from_bytes(*self.hasher.finalize().as_bytes())
    }

    /// Eight bytes of the hash so far: what goes into a record with every input.
    pub fn mark(&self) -> u64 {
        self.digest().first_bits()
    }
}

/// Bytes before an entry: its length and the length's check.
pub(super) const HEAD_BYTES: usize = 8;

/// Bytes after an entry: the check of its body.
pub(super) const TAIL_BYTES: usize = 8;

/// Hash over everything so far: `c_0 = H(opening)`, `c_k = H(c_{k-1}, body_k)`, H keyed BLAKE3.
#[derive(Clone, Debug)]
pub(super) struct Chain([u8; 32]);

impl Chain {
    /// Begins with a record's opening bytes.
    pub(super) fn new(opening: &[u8]) -> Self {
        Self(*blake3::hash(opening).as_bytes())
    }

    /// The check of the next entry's length.
    pub(super) fn head(&self, length: u32) -> [u8; 4] {
        let hash = blake3::keyed_hash(&self.0, &length.to_le_bytes());
        let mut check = [0; 4];
        check.copy_from_slice(&hash.as_bytes()[..4]);
        check
    }

    /// Takes an entry in and gives its check.
    pub(super) fn link(&mut self, body: &[u8]) -> [u8; TAIL_BYTES] {
        self.0 = *blake3::keyed_hash(&self.0, body).as_bytes();
        let mut check = [0; TAIL_BYTES];
        check.copy_from_slice(&self.0[..TAIL_BYTES]);
        check
    }
}

/// The bytes that a record of this build opens with.
fn opening(binary: &str) -> Vec<u8> {
    let mut end = binary.len().min(RECORD_BINARY_BYTES_MAX);
    while !binary.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&RECORD_VERSION.to_le_bytes());
    bytes.push(u8::try_from(end).unwrap_or(u8::MAX));
    bytes.extend_from_slice(&binary.as_bytes()[..end]);
    bytes
}

/// Puts checks around entries. Apart from the [`Recorder`](crate::record::Recorder), so that a
/// driver can leave it to the thread that writes and still end a record whose queue ran full.
#[derive(Clone, Debug)]
pub struct Framer {
    chain: Chain,
    inputs: u64,
}

impl Framer {
    /// Begins a record: the framer, and the record's first bytes with its header.
    ///
    /// # Errors
    /// When the header is above the limit of an entry.
    pub fn start(binary: &str, header: &RecordHeader) -> Result<(Self, Vec<u8>), RecordError> {
        let mut bytes = opening(binary);
        let mut framer = Self {
            chain: Chain::new(&bytes),
            inputs: 0,
        };
        framer.put(&EntryBytes::header(header)?, &mut bytes);
        Ok((framer, bytes))
    }

    /// Appends an entry of the recorder, with its checks, to `to`.
    pub fn frame(&mut self, entry: &EntryBytes, to: &mut Vec<u8>) {
        self.put(entry, to);
        self.inputs += 1;
    }

    /// Appends the marker of a record that ends before its peer does.
    pub fn cut(&mut self, reason: &str, to: &mut Vec<u8>) {
        // A reason is cut to its limit, far below that of an entry.
        if let Ok(entry) = EntryBytes::cut(self.inputs, reason) {
            self.put(&entry, to);
        }
    }

    fn put(&mut self, entry: &EntryBytes, to: &mut Vec<u8>) {
        let body = entry.as_bytes();
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        to.extend_from_slice(&length.to_le_bytes());
        to.extend_from_slice(&self.chain.head(length));
        to.extend_from_slice(body);
        to.extend_from_slice(&self.chain.link(body));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SNAPSHOT_BYTES_MAX;
    use crate::{Digest, Done, OrderId};

    #[test]
    fn the_largest_snapshot_and_the_largest_roll_fit() {
        let done = Input::Done {
            order: OrderId::default(),
            done: Done::Loaded {
                digests: vec![Digest::of(b"one")],
                note: vec![7; SNAPSHOT_BYTES_MAX],
            },
        };
        let entry = EntryBytes::input(Time::ZERO, 0, &done).unwrap();
        let read = Entry::decode(0, entry.as_bytes()).unwrap();
        let Entry::Input { input, .. } = read else {
            panic!("{read:?}");
        };
        assert_eq!(*input, done);
    }
}
