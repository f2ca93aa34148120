//! The pinned state that newcomers fetch from this daemon, and the state that it fetches itself.

use super::incoming::{Incoming, StateRoom, Transfer};
use crate::bulk::Refusal;
use bytes::Bytes;
use murmurate_protocol::limits::STATE_CHUNK_BYTES;
use murmurate_protocol::{Round, StateId};
use murmurate_strategies::executor::{ManifestWriter, StateBytes, WriteState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A state that others can fetch.
#[derive(Debug)]
pub(super) struct Pinned {
    state: StateId,
    manifest: Bytes,
    room: StateRoom,
}

impl Pinned {
    /// Writes a state to a file without a name in `dir`, or to memory where there is no `dir` or the
    /// file cannot be written.
    pub(super) fn write(
        round: Round,
        dir: Option<&Path>,
        write: WriteState<'_>,
    ) -> io::Result<Self> {
        if let Some(dir) = dir {
            match Self::to_file(round, dir, write) {
                Ok(pinned) => return Ok(pinned),
                Err(error) => tracing::warn!(%error, dir = %dir.display(),
                    "a state for newcomers is kept in memory, because no file can be written"),
            }
        }
        let mut memory = Vec::new();
        let (state, manifest) = write_all(round, &mut memory, write)?;
        let room = StateRoom::Memory(memory);
        Ok(Self {
            state,
            manifest,
            room,
        })
    }

    fn to_file(round: Round, dir: &Path, write: WriteState<'_>) -> io::Result<Self> {
        let mut file = tempfile::tempfile_in(dir)?;
        let (state, manifest) = write_all(round, &mut file, write)?;
        let room = StateRoom::File(file, state.bytes);
        Ok(Self {
            state,
            manifest,
            room,
        })
    }

    pub(super) fn chunk(&self, index: u32) -> Option<Bytes> {
        let at = u64::from(index) * STATE_CHUNK_BYTES as u64;
        let bytes = self.state.bytes.checked_sub(at);
        let bytes = bytes.filter(|bytes| *bytes > 0)?;
        let mut chunk = vec![0; bytes.min(STATE_CHUNK_BYTES as u64) as usize];
        match self.room.read_at(at, &mut chunk) {
            Ok(()) => Some(Bytes::from(chunk)),
            Err(error) => {
                tracing::warn!(%error, index, "a chunk of the pinned state cannot be read");
                None
            }
        }
    }
}

fn write_all(
    round: Round,
    to: &mut dyn Write,
    write: WriteState<'_>,
) -> io::Result<(StateId, Bytes)> {
    let mut out = ManifestWriter::new(to);
    write(&mut out)?;
    out.finish(round)
}

/// At most one pinned and one incoming state.
#[derive(Debug, Default)]
pub(super) struct States {
    /// Where their files are; `None` for memory.
    dir: Option<PathBuf>,
    pinned: Option<Arc<Pinned>>,
    incoming: Option<Incoming>,
    /// In which this daemon is.
    round: Round,
}

impl States {
    /// With files in `dir`, and with what an earlier life of the daemon fetched there.
    pub(super) fn in_dir(dir: &Path, bytes_max: u64) -> Self {
        Self {
            dir: Some(dir.to_owned()),
            pinned: None,
            incoming: Incoming::resume(dir, bytes_max),
            round: Round(0),
        }
    }

    pub(super) fn dir(&self) -> Option<PathBuf> {
        self.dir.clone()
    }

    pub(super) fn pin(&mut self, pinned: Pinned) -> StateId {
        let state = pinned.state;
        self.pinned = Some(Arc::new(pinned));
        state
    }

    pub(super) fn unpin(&mut self, round: Round) {
        self.pinned.take_if(|pinned| pinned.state.round == round);
    }

    pub(super) fn pinned(&self, state: &StateId) -> Option<Arc<Pinned>> {
        self.pinned.clone().filter(|p| p.state == *state)
    }

    pub(super) fn manifest(&self, state: &StateId) -> Option<Bytes> {
        let pinned = self.pinned.as_ref().filter(|p| p.state == *state)?;
        Some(pinned.manifest.clone())
    }

    /// Prepares for a state. A second fetch of the same state keeps the chunks that have arrived.
    pub(super) fn begin(&mut self, state: &StateId, manifest: &[u8]) {
        if self.incoming.as_ref().is_some_and(|i| i.state == *state) {
            return;
        }
        self.incoming = Some(Incoming::begin(*state, manifest, self.dir.as_deref()));
    }

    pub(super) fn has_chunk(&self, state: &StateId, index: u32) -> bool {
        let incoming = self.incoming.as_ref().filter(|i| i.state == *state);
        incoming.is_some_and(|incoming| incoming.has_chunk(index))
    }

    pub(super) fn put_chunk(
        &mut self,
        state: &StateId,
        index: u32,
        chunk: &[u8],
    ) -> Result<(), Refusal> {
        let incoming = self.incoming.as_mut().filter(|i| i.state == *state);
        incoming.ok_or(Refusal::Unwanted)?.put_chunk(index, chunk)
    }

    /// Removes and returns the state, once all chunks are here.
    pub(super) fn take(&mut self, state: &StateId) -> Option<Box<dyn StateBytes>> {
        let complete = |i: &mut Incoming| i.state == *state && i.is_complete();
        let incoming = self.incoming.take_if(complete)?;
        Some(incoming.into_bytes())
    }

    /// This daemon is in `round`. Once it begins one, the state of an earlier one would take it back. One that
    /// comes later is wanted: no other confirms this daemon's own.
    pub(super) fn begun(&mut self, round: Round) {
        if std::mem::replace(&mut self.round, round) == round {
            return;
        }
        let past = |incoming: &mut Incoming| incoming.state.round < round;
        if let Some(mut past) = self.incoming.take_if(past) {
            past.remove_files();
        }
    }

    pub(super) fn transfer(&self) -> Option<Transfer> {
        self.incoming.as_ref().map(Incoming::transfer)
    }
}

#[cfg(test)]
mod tests;
