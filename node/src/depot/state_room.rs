//! The place of a state's bytes: a file in the daemon's directory, or memory where no file can be
//! written.

use murmurate_strategies::executor::StateBytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The bytes of a state.
#[derive(Debug)]
pub(super) enum StateRoom {
    /// A file. The machine's page cache holds what is used often.
    File(File, u64),
    /// Memory.
    Memory(Vec<u8>),
}

impl StateRoom {
    /// Writes bytes that start at `at` and end within the state.
    pub(super) fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.write_all_at(bytes, at),
            Self::Memory(memory) => {
                let start = usize::try_from(at).ok();
                let end = start.and_then(|start| start.checked_add(bytes.len()));
                let range = start.zip(end).map(|(start, end)| start..end);
                let place = range.and_then(|range| memory.get_mut(range));
                place
                    .ok_or(io::ErrorKind::WriteZero)?
                    .copy_from_slice(bytes);
                Ok(())
            }
        }
    }
}

impl StateBytes for StateRoom {
    fn bytes(&self) -> u64 {
        match self {
            Self::File(_, bytes) => *bytes,
            Self::Memory(memory) => memory.bytes(),
        }
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.read_exact_at(into, at),
            Self::Memory(memory) => memory.read_at(at, into),
        }
    }
}
