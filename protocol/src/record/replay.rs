//! Repeats a record: its inputs into a fresh peer, the peer's outputs against its hashes.

use crate::record::{Entry, OutputHash, RecordError, RecordHeader};
use crate::{Input, Output, Peer, Time, Topology};

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
