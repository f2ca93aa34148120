//! What the Executor needs from its host: places for encoded bytes and states, and a clock.
//!
//! The bytes of a transferred state are written once in order and read in pieces. They are never whole in
//! memory unless their store keeps them there.

use crate::slices::SliceStore;
use bytes::Bytes;
use murmurate_protocol::limits::STATE_CHUNK_BYTES;
use murmurate_protocol::{Digest, Round, StateId, WorkError};
use std::io::{self, Write};
use std::time::Duration;

/// Pinned states that newcomers fetch, and states that this peer has fetched.
pub trait StateStore {
    /// Keeps the state that opens `round` for others to fetch, and returns its id.
    ///
    /// # Errors
    /// If it can be kept nowhere.
    fn pin(&self, round: Round, write: WriteState<'_>) -> io::Result<StateId>;
    /// Forgets the state that opens `round`.
    fn unpin(&self, round: Round);
    /// Removes and returns a fetched and verified state.
    fn take(&self, state: &StateId) -> Option<Box<dyn StateBytes>>;
}

/// Everything that the mix lane needs from its host.
pub trait Host: SliceStore + StateStore {}

impl<T: SliceStore + StateStore> Host for T {}

/// What comes of an order, or of a part of it.
pub(super) type WorkResult<T = ()> = Result<T, WorkError>;

/// Measures how long a stretch of training takes. The daemon reads a clock, the simulator counts inner steps.
pub trait Stopwatch: Send {
    /// A stretch begins.
    fn start(&mut self);
    /// The time since then, after this number of inner steps.
    fn elapsed(&mut self, steps: u64) -> Duration;
}

/// The bytes of a fetched and verified state.
pub trait StateBytes: Send {
    /// Number of bytes.
    fn bytes(&self) -> u64;

    /// Reads the bytes that start at `at`, as many as `into` has.
    ///
    /// # Errors
    /// If the state ends before, or the store cannot read them.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

impl StateBytes for Bytes {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        read_within(self, at, into)
    }
}

impl StateBytes for Vec<u8> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        read_within(self, at, into)
    }
}

fn read_within(state: &[u8], at: u64, into: &mut [u8]) -> io::Result<()> {
    let start = usize::try_from(at).ok();
    let end = start.and_then(|start| start.checked_add(into.len()));
    let range = start.zip(end).map(|(start, end)| start..end);
    let from = range.and_then(|range| state.get(range));
    into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

/// Writes all of a state, in order. A store may ask for it again after an error.
pub type WriteState<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// Passes a state on to its place and hashes its chunks on the way.
pub struct ManifestWriter<'a> {
    out: &'a mut dyn Write,
    /// The chunk that is not complete yet.
    chunk: Vec<u8>,
    manifest: Vec<u8>,
    bytes: u64,
}

impl<'a> ManifestWriter<'a> {
    /// Writes to `out`, a chunk at a time.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            chunk: Vec::with_capacity(STATE_CHUNK_BYTES),
            manifest: Vec::new(),
            bytes: 0,
        }
    }

    /// The id of the state that was written, and its manifest (the hashes of its chunks, back to
    /// back), whose hash is the id's root.
    ///
    /// # Errors
    /// Those of the place that is written to.
    pub fn finish(mut self, round: Round) -> io::Result<(StateId, Bytes)> {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        self.out.flush()?;
        let state = StateId {
            round,
            root: Digest::of(&self.manifest),
            bytes: self.bytes,
        };
        Ok((state, Bytes::from(self.manifest)))
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        self.out.write_all(&self.chunk)?;
        self.manifest
            .extend_from_slice(Digest::of(&self.chunk).as_bytes());
        self.bytes += self.chunk.len() as u64;
        self.chunk.clear();
        Ok(())
    }
}

impl Write for ManifestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(STATE_CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == STATE_CHUNK_BYTES {
            self.end_chunk()?;
        }
        Ok(taken)
    }

    /// A chunk is passed on when it is complete.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A state in memory, with its id and its manifest, for stores that keep it there.
///
/// # Errors
/// Those of `write`.
pub fn state_in_memory(round: Round, write: WriteState<'_>) -> io::Result<(StateId, Bytes, Bytes)> {
    let mut bytes = Vec::new();
    let mut out = ManifestWriter::new(&mut bytes);
    write(&mut out)?;
    let (state, manifest) = out.finish(round)?;
    Ok((state, manifest, Bytes::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_state_has_the_manifest_of_its_bytes() {
        for bytes in [0, 1, STATE_CHUNK_BYTES, 2 * STATE_CHUNK_BYTES + 17] {
            let wanted: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let (state, manifest, written) = state_in_memory(Round(7), &mut |out| {
                // In pieces that are no part of a chunk.
                wanted.chunks(300_007).try_for_each(|p| out.write_all(p))
            })
            .unwrap();
            assert_eq!(written, wanted);
            let hashes = wanted.chunks(STATE_CHUNK_BYTES).map(Digest::of);
            let hashes: Vec<u8> = hashes.flat_map(|hash| *hash.as_bytes()).collect();
            assert_eq!(manifest, hashes);
            assert_eq!(state.root, Digest::of(&manifest));
            assert_eq!((state.round, state.bytes), (Round(7), bytes as u64));
        }
    }

    #[test]
    fn a_state_is_read_only_within_its_bytes() {
        let state = Bytes::from_static(b"0123456789");
        let mut three = [0; 3];
        state.read_at(7, &mut three).unwrap();
        assert_eq!(&three, b"789");
        for at in [8, 10, u64::MAX] {
            assert!(state.read_at(at, &mut three).is_err(), "{at}");
        }
    }
}
