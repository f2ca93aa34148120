//! A state that is being fetched. Its chunks lie in the daemon's directory, so that a daemon that is
//! restarted in the middle goes on where it was.

use crate::bulk::{Manifest, Refusal};
use murmurate_protocol::limits::STATE_CHUNK_BYTES;
use murmurate_protocol::{Digest, Round, StateId};
use murmurate_strategies::executor::StateBytes;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file with the chunks, each at its place.
const CHUNKS: &str = "incoming.state";

/// The file with the state's id and its manifest.
const MANIFEST: &str = "incoming.manifest";

/// Size of a state's id at the start of [`MANIFEST`].
const ID_BYTES: usize = 8 + 32 + 8;

/// How far the fetch of a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The round that the state opens.
    pub round: Round,
    /// Bytes that are here.
    pub bytes: u64,
    /// Bytes in all.
    pub of: u64,
}

/// A state that is being fetched. It survives an interrupted fetch, and where it has a file, the end
/// of the process.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) state: StateId,
    room: StateRoom,
    here: Vec<bool>,
    /// Where its files are, if it has any.
    dir: Option<PathBuf>,
}

impl Incoming {
    /// Makes room for a state, in files of `dir` if they can be written.
    pub(super) fn begin(state: StateId, manifest: &[u8], dir: Option<&Path>) -> Self {
        let file = dir.and_then(|dir| match create(&state, manifest, dir) {
            Ok(file) => Some((file, dir.to_owned())),
            Err(error) => {
                tracing::warn!(%error, dir = %dir.display(),
                    "a fetched state is kept in memory, because no file can be written");
                let _ = remove(dir);
                None
            }
        });
        let (room, dir) = match file {
            Some((file, dir)) => (StateRoom::File(file, state.bytes), Some(dir)),
            None => (StateRoom::Memory(vec![0; state.bytes as usize]), None),
        };
        Self {
            state,
            room,
            here: vec![false; chunks(&state)],
            dir,
        }
    }

    /// The state of which an earlier life of the daemon fetched a part, with the chunks that are
    /// whole. Files that hold nothing of use are removed.
    pub(super) fn resume(dir: &Path, bytes_max: u64) -> Option<Self> {
        let found = read(dir, bytes_max);
        if found.is_none() {
            // Nothing is there, as a rule.
            let _ = remove(dir);
        }
        let found = found?;
        let here = found.here.iter().filter(|here| **here).count();
        tracing::info!(round = %found.state.round, chunks = here, of = found.here.len(),
            "a part of a state was fetched before the restart");
        Some(found)
    }

    pub(super) fn has_chunk(&self, index: u32) -> bool {
        self.here.get(index as usize).copied().unwrap_or(false)
    }

    /// Stores a chunk. Where the file cannot be written, the state moves into memory.
    pub(super) fn put_chunk(&mut self, index: u32, chunk: &[u8]) -> Result<(), Refusal> {
        let at = u64::from(index) * STATE_CHUNK_BYTES as u64;
        if at.saturating_add(chunk.len() as u64) > self.state.bytes {
            return Err(Refusal::TooLong);
        }
        if let Err(error) = self.room.write_at(at, chunk) {
            tracing::warn!(%error, "a fetched state goes on in memory, because its file cannot be written");
            self.move_to_memory();
            let written = self.room.write_at(at, chunk);
            written.map_err(|_| Refusal::TooLong)?;
        }
        if let Some(here) = self.here.get_mut(index as usize) {
            *here = true;
        }
        Ok(())
    }

    /// Lets every later write to the file fail.
    #[cfg(test)]
    pub(super) fn read_only_for_tests(&mut self, dir: &Path) {
        let file = File::open(dir.join(CHUNKS)).expect("the file is there");
        self.room = StateRoom::File(file, self.state.bytes);
    }

    fn move_to_memory(&mut self) {
        let mut memory = vec![0; self.state.bytes as usize];
        let places = memory.chunks_mut(STATE_CHUNK_BYTES).enumerate();
        for ((index, place), here) in places.zip(&mut self.here) {
            let at = index as u64 * STATE_CHUNK_BYTES as u64;
            *here = *here && self.room.read_at(at, place).is_ok();
        }
        self.room = StateRoom::Memory(memory);
        self.remove_files();
    }

    pub(super) fn transfer(&self) -> Transfer {
        let here = self.here.iter().filter(|here| **here).count() as u64;
        Transfer {
            round: self.state.round,
            bytes: (here * STATE_CHUNK_BYTES as u64).min(self.state.bytes),
            of: self.state.bytes,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.here.iter().all(|here| *here)
    }

    /// The bytes. The files lose their names, and their space once the bytes are dropped.
    pub(super) fn into_bytes(mut self) -> Box<dyn StateBytes> {
        self.remove_files();
        Box::new(self.room)
    }

    /// Removes the files, so that no later life of the daemon finds them.
    pub(super) fn remove_files(&mut self) {
        if let Some(dir) = self.dir.take()
            && let Err(error) = remove(&dir)
        {
            tracing::warn!(%error, dir = %dir.display(), "the file of a fetched state stays");
        }
    }
}

fn chunks(state: &StateId) -> usize {
    (state.bytes as usize).div_ceil(STATE_CHUNK_BYTES)
}

fn create(state: &StateId, manifest: &[u8], dir: &Path) -> io::Result<File> {
    let mut head = Vec::with_capacity(ID_BYTES + manifest.len());
    head.extend_from_slice(&state.round.0.to_le_bytes());
    head.extend_from_slice(state.root.as_bytes());
    head.extend_from_slice(&state.bytes.to_le_bytes());
    head.extend_from_slice(manifest);
    fs::write(dir.join(MANIFEST), head)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(dir.join(CHUNKS))?;
    file.set_len(state.bytes)?;
    Ok(file)
}

/// Every chunk is checked against the manifest, and the manifest against its root, so it does not
/// matter in which order the files were written before the power went.
fn read(dir: &Path, bytes_max: u64) -> Option<Incoming> {
    let head = fs::read(dir.join(MANIFEST)).ok()?;
    let (id, manifest) = head.split_at_checked(ID_BYTES)?;
    let number = |at: usize| Some(u64::from_le_bytes(id.get(at..at + 8)?.try_into().ok()?));
    let state = StateId {
        round: Round(number(0)?),
        root: Digest::from_bytes(id.get(8..40)?.try_into().ok()?),
        bytes: number(40)?,
    };
    let verified = Manifest::verify(state, manifest).ok()?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).open(dir.join(CHUNKS)).ok()?;
    if state.bytes > bytes_max || file.metadata().ok()?.len() != state.bytes {
        return None;
    }
    let room = StateRoom::File(file, state.bytes);
    let mut chunk = vec![0; STATE_CHUNK_BYTES];
    let mut holds = |index: u32| {
        let bytes = verified.chunk_bytes(index).unwrap_or(0);
        let chunk = &mut chunk[..bytes as usize];
        let at = u64::from(index) * STATE_CHUNK_BYTES as u64;
        room.read_at(at, chunk).is_ok() && verified.holds(index, chunk)
    };
    let here: Vec<bool> = (0..verified.chunks()).map(&mut holds).collect();
    here.contains(&true).then(|| Incoming {
        state,
        room,
        here,
        dir: Some(dir.to_owned()),
    })
}

fn remove(dir: &Path) -> io::Result<()> {
    for name in [MANIFEST, CHUNKS] {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The place of a state's bytes: a file in the daemon's directory, or memory where no file can be written.
#[derive(Debug)]
pub(super) enum StateRoom {
    /// A file. The machine's page cache holds its frequently used parts.
    File(File, u64),
    Memory(Vec<u8>),
}

impl StateRoom {
    /// Writes bytes that start at `at` and end within the state.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
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
