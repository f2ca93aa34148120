//! Follows a peer and makes the entries of its record.

use crate::record::{EntryBytes, OutputHash, RecordError};
use crate::{Input, Output, Time};

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
