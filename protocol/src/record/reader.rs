//! From bytes to entries, strictly: every byte is under a check, and order is looked at too.

use crate::limits::{RECORD_BINARY_BYTES_MAX, RECORD_ENTRY_BYTES_MAX};
use crate::record::entry::{Chain, HEAD_BYTES, TAIL_BYTES};
use crate::record::{Entry, MAGIC, OutputHash, RECORD_VERSION, RecordError, RecordHeader};
use crate::{Input, Output, Peer, PlanHash, Time, Topology};

/// Takes a record's bytes in, in pieces of any size, and gives its entries out.
///
/// It holds no more than the pieces it was given since the last whole entry.
#[derive(Debug)]
pub struct RecordReader {
    binary: String,
    buffer: Vec<u8>,
    /// How much of the buffer has been read.
    read: usize,
    /// Where in the record the buffer begins.
    base: u64,
    reading: Reading,
    /// What drivers keep to, as seen so far.
    order: Order,
}

/// What comes next in the record.
#[derive(Debug)]
enum Reading {
    /// The opening bytes, with the versions.
    Opening,
    /// The header, which is the first entry.
    Header(Chain),
    /// Another entry.
    Entries(Chain),
    /// Nothing: the last entry was read.
    Closed,
}

/// What the entries so far say about the next.
#[derive(Debug, Default)]
struct Order {
    fragments: usize,
    plan: Option<PlanHash>,
    started: bool,
    last: Time,
    inputs: u64,
}

impl RecordReader {
    /// For records made by the binary of this version.
    pub fn new(binary: &str) -> Self {
        Self {
            binary: binary.to_owned(),
            buffer: Vec::new(),
            read: 0,
            base: 0,
            reading: Reading::Opening,
            order: Order::default(),
        }
    }

    /// Takes the next bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.base += self.read as u64;
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next entry; `None` when it is not here as a whole yet.
    ///
    /// # Errors
    /// When this is no record of this build, was damaged, or is one that no driver makes.
    pub fn entry(&mut self) -> Result<Option<Entry>, RecordError> {
        if matches!(self.reading, Reading::Opening) {
            let Some(chain) = self.opening()? else {
                return Ok(None);
            };
            self.reading = Reading::Header(chain);
        }
        let at = self.at();
        let unread = self.buffer.get(self.read..).unwrap_or_default();
        let (chain, first) = match &mut self.reading {
            Reading::Header(chain) => (chain, true),
            Reading::Entries(chain) => (chain, false),
            Reading::Opening | Reading::Closed => {
                return if unread.is_empty() {
                    Ok(None)
                } else {
                    Err(RecordError::Trailing { at })
                };
            }
        };
        let Some(body) = body(at, chain, unread)? else {
            return Ok(None);
        };
        let entry = Entry::decode(at, body)?;
        let chain = chain.clone();
        self.read += HEAD_BYTES + body.len() + TAIL_BYTES;
        self.order.check(at, first, &entry)?;
        self.reading = match entry {
            Entry::End { .. } | Entry::Cut { .. } => Reading::Closed,
            Entry::Header(_) | Entry::Input { .. } => Reading::Entries(chain),
        };
        Ok(Some(entry))
    }

    /// Where the next entry begins.
    pub fn at(&self) -> u64 {
        self.base + self.read as u64
    }

    /// Bytes of an entry that is not here as a whole.
    pub fn unread(&self) -> usize {
        self.buffer.len().saturating_sub(self.read)
    }

    /// Reads what comes before the entries, once it is here.
    fn opening(&mut self) -> Result<Option<Chain>, RecordError> {
        let magic = self.buffer.get(..MAGIC.len());
        let known = self.buffer.len().min(MAGIC.len());
        if self.buffer.get(..known) != MAGIC.get(..known) {
            return Err(RecordError::NotARecord);
        }
        let version = self.buffer.get(MAGIC.len()..).and_then(|b| b.first_chunk());
        let (Some(_), Some(version)) = (magic, version) else {
            return Ok(None);
        };
        let theirs = u32::from_le_bytes(*version);
        if theirs != RECORD_VERSION {
            return Err(RecordError::OtherRecordVersion { theirs });
        }
        let start = MAGIC.len() + version.len() + 1;
        let Some(length) = self.buffer.get(start - 1).copied() else {
            return Ok(None);
        };
        let end = start + usize::from(length);
        if usize::from(length) > RECORD_BINARY_BYTES_MAX {
            return Err(RecordError::NotARecord);
        }
        let Some(binary) = self.buffer.get(start..end) else {
            return Ok(None);
        };
        if binary != self.binary.as_bytes() {
            return Err(RecordError::OtherBinary {
                theirs: String::from_utf8_lossy(binary).into_owned(),
                ours: self.binary.clone(),
            });
        }
        self.read = end;
        Ok(self.buffer.get(..end).map(Chain::new))
    }
}

/// The body of the entry at `at`, whose checks hold; `None` when it is not here as a whole.
fn body<'a>(at: u64, chain: &mut Chain, unread: &'a [u8]) -> Result<Option<&'a [u8]>, RecordError> {
    let (Some(length), Some(check)) = (
        unread.first_chunk::<4>(),
        unread.get(4..HEAD_BYTES).and_then(|b| b.first_chunk::<4>()),
    ) else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length);
    if chain.head(length) != *check {
        let what = "its length";
        return Err(RecordError::Damaged { at, what });
    }
    let bytes = u64::from(length);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > RECORD_ENTRY_BYTES_MAX {
        return Err(RecordError::TooLong { bytes });
    }
    let rest = unread.get(HEAD_BYTES..).unwrap_or_default();
    let (Some(body), Some(tail)) = (rest.get(..length), rest.get(length..length + TAIL_BYTES))
    else {
        return Ok(None);
    };
    if chain.link(body) != *tail {
        let what = "its content";
        return Err(RecordError::Damaged { at, what });
    }
    Ok(Some(body))
}

impl Order {
    fn check(&mut self, at: u64, first: bool, entry: &Entry) -> Result<(), RecordError> {
        let impossible = |what| Err(RecordError::Impossible { at, what });
        match entry {
            Entry::Header(header) if first => {
                header.check()?;
                self.fragments = header.plan.fragments.len();
                self.plan = Some(header.plan.hash());
                Ok(())
            }
            Entry::Header(_) => impossible("a second header"),
            _ if first => impossible("no header"),
            Entry::Input {
                at: time, input, ..
            } => {
                if *time < self.last {
                    return impossible("time goes back");
                }
                self.last = *time;
                self.inputs += 1;
                match input.as_ref() {
                    Input::Start { .. } if self.started => impossible("it starts twice"),
                    Input::Start {
                        snapshot, digests, ..
                    } => {
                        self.started = true;
                        if digests.len() != self.fragments {
                            return impossible("one digest a fragment is needed");
                        }
                        let fits = |weight: &f64| weight.is_finite() && *weight > 0.0;
                        let foreign = snapshot.as_ref().is_some_and(|snapshot| {
                            Some(snapshot.plan) != self.plan || !snapshot.weights.iter().all(fits)
                        });
                        if foreign {
                            impossible("a snapshot of another plan")
                        } else {
                            Ok(())
                        }
                    }
                    // Whether a peer only observes is known before it starts, and what the owner directs.
                    Input::Observes(_) | Input::Directives(_) => Ok(()),
                    _ if !self.started => impossible("something happens before the start"),
                    _ => Ok(()),
                }
            }
            Entry::End { inputs, .. } | Entry::Cut { inputs, .. } => {
                if *inputs == self.inputs {
                    Ok(())
                } else {
                    impossible("it counts other inputs than there are")
                }
            }
        }
    }
}

/// Where the outputs are first not those of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// After which input, from zero.
    pub input: u64,
    /// When that was handled.
    pub at: Time,
}

/// A peer that goes through a record once more.
pub struct Replay {
    peer: Peer,
    outputs: OutputHash,
    inputs: u64,
    now: Time,
    difference: Option<Difference>,
}

impl Replay {
    /// A peer made from a record's header, with the topology that the header tells.
    ///
    /// # Errors
    /// When no peer can be made from it.
    pub fn new(
        header: RecordHeader,
        topology: Option<Box<dyn Topology>>,
    ) -> Result<Self, RecordError> {
        header.check()?;
        if header.plan.exchange.has_neighbours() && topology.is_none() {
            return Err(RecordError::Topology);
        }
        Ok(Self {
            peer: Peer::new(header.config, header.plan, topology),
            outputs: OutputHash::default(),
            inputs: 0,
            now: Time::ZERO,
            difference: None,
        })
    }

    /// Takes the record's next entry, as the reader gives it, and shows `see` every output. After
    /// the first difference nothing is fed any more: what follows would be noise.
    pub fn entry(&mut self, entry: Entry, see: &mut dyn FnMut(&Output)) {
        match entry {
            _ if self.difference.is_some() => {}
            Entry::Input { at, mark, input } => {
                if self.inputs > 0 && mark != self.outputs.mark() {
                    self.differs();
                    return;
                }
                self.feed(at, *input, see);
            }
            Entry::End {
                outputs, digest, ..
            } => {
                if outputs != self.outputs.count() || digest != self.outputs.digest() {
                    self.differs();
                }
            }
            Entry::Header(_) | Entry::Cut { .. } => {}
        }
    }

    fn feed(&mut self, at: Time, input: Input, see: &mut dyn FnMut(&Output)) {
        self.now = at;
        self.inputs += 1;
        // A broken rule is scored inside the peer, here as in the run.
        let _ = self.peer.handle(at, input);
        while let Some(output) = self.peer.poll_output() {
            self.outputs.add(&output);
            see(&output);
        }
    }

    fn differs(&mut self) {
        self.difference = Some(Difference {
            input: self.inputs.saturating_sub(1),
            at: self.now,
        });
    }

    /// The peer as it is now.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Inputs fed.
    pub const fn inputs(&self) -> u64 {
        self.inputs
    }

    /// The running hash over the outputs.
    pub const fn outputs(&self) -> &OutputHash {
        &self.outputs
    }

    /// Where the outputs are first not those of the record, if anywhere.
    pub const fn difference(&self) -> Option<Difference> {
        self.difference
    }
}

impl core::fmt::Debug for Replay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Replay")
            .field("inputs", &self.inputs)
            .field("difference", &self.difference)
            .finish_non_exhaustive()
    }
}
