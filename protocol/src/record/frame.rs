//! From a peer to a record's bytes: the recorder makes entries and a running hash over outputs, the framer puts a
//! chain of checks around them.

use crate::limits::RECORD_BINARY_BYTES_MAX;
use crate::record::{EntryBytes, MAGIC, RECORD_VERSION, RecordError, RecordHeader};
use crate::wire::encode_value;
use crate::{Digest, Input, Output, Time};

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
