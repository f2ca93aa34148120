//! Writes a checkpoint beside the last one and commits it with one rename. State is streamed from the Executor to the
//! disk, each lane's into a file of its own.

use super::reader::{host, read_manifest};
use super::{MANIFEST, Manifest, directory_name, is_directory_name};
use crate::store::StoreError;
use crate::store::files::{PRIVATE, create, create_private, sync_directory, write_private};
use crate::store::tensors::{TensorFile, TensorWriter};
use murmurate_strategies::Layout;
use murmurate_strategies::state::{StateError, StateSink};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A checkpoint that is being written. Dropping it without a commit removes its files.
#[derive(Debug)]
pub struct CheckpointWriter {
    dir: PathBuf,
    target: PathBuf,
    round: u64,
    generation: u64,
    layout: Arc<Layout>,
    committed: bool,
}

impl CheckpointWriter {
    /// Begins a checkpoint of the state at the start of `round` in a daemon's directory.
    ///
    /// # Errors
    /// If the directory cannot be written, or if it contains a checkpoint that cannot be read,
    /// which is then kept.
    pub fn begin(dir: &Path, round: u64, layout: Arc<Layout>) -> Result<Self, StoreError> {
        let last = read_manifest(dir)?;
        let generation = last.map_or(0, |m| m.generation.saturating_add(1));
        let target = dir.join(directory_name(round, generation));
        if target.exists() {
            // An earlier life began this checkpoint and never committed it; no manifest names it.
            std::fs::remove_dir_all(&target).map_err(|e| StoreError::io("remove", &target, e))?;
        }
        create_private(&target).map_err(|e| StoreError::io("create", &target, e))?;
        Ok(Self {
            dir: dir.to_owned(),
            target,
            round,
            generation,
            layout,
            committed: false,
        })
    }

    /// Creates the file of one lane. Each lane writes its file on its own thread.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn sink(&self, lane: &str) -> Result<LaneSink, StoreError> {
        let path = self.target.join(format!("{lane}.safetensors"));
        LaneSink::create(&path, Arc::clone(&self.layout))
    }

    /// Makes this checkpoint the current one, then removes the previous one.
    ///
    /// # Errors
    /// If the disk fails before the commit. The previous checkpoint then stays current.
    pub fn commit(
        mut self,
        mut manifest: Manifest,
        files: Vec<LaneFile>,
    ) -> Result<(), StoreError> {
        manifest.round = self.round;
        manifest.generation = self.generation;
        manifest.directory = directory_name(self.round, self.generation);
        manifest.files = files.into_iter().map(|f| f.0).collect();
        sync_directory(&self.target)?;
        sync_directory(&self.dir)?;
        let path = self.dir.join(MANIFEST);
        let text = manifest
            .text()
            .map_err(|e| StoreError::io("write", &path, e.into()))?;
        write_private(&path, text.as_bytes())?;
        self.committed = true;
        // Without its copy the checkpoint is as good.
        let _ = create(&self.target.join(MANIFEST), PRIVATE)
            .map(|mut copy| copy.write_all(text.as_bytes()));
        self.remove_others();
        Ok(())
    }

    /// Removes all checkpoint directories except the committed one. A failure only costs space.
    fn remove_others(&self) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if entry.path() != self.target && name.to_str().is_some_and(is_directory_name) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if !self.committed {
            // The checkpoint is incomplete. If it cannot be removed, it only costs space.
            let _ = std::fs::remove_dir_all(&self.target);
        }
    }
}

/// Bytes of the header that one entry takes, without its name.
const ENTRY_BYTES: usize = 96;

/// Number of copies of the parameters for which the header has room. With more, the data is moved
/// once.
const STORES_PER_HEADER: usize = 6;

/// A lane's finished file.
#[derive(Debug)]
pub struct LaneFile(pub(super) TensorFile);

/// Writes the state of one lane, on that lane's thread.
///
/// A store as long as the whole model, such as `anchor`, is stored tensor by tensor under the
/// layout's names (`anchor.layer1.weight`), so that other programs can find the model in it.
#[derive(Debug)]
pub struct LaneSink {
    writer: TensorWriter,
    layout: Arc<Layout>,
}

impl LaneSink {
    pub(super) fn create(path: &std::path::Path, layout: Arc<Layout>) -> Result<Self, StoreError> {
        let per_store: usize = layout
            .tensors()
            .iter()
            .map(|t| t.name.len() + ENTRY_BYTES)
            .sum();
        let writer = TensorWriter::create(path, 4096 + STORES_PER_HEADER * per_store)?;
        Ok(Self { writer, layout })
    }

    /// Completes the file and flushes it to stable storage.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(self) -> Result<LaneFile, StoreError> {
        self.writer.finish().map(LaneFile)
    }

    fn refuse_twice(&self, name: &str) -> Result<(), StateError> {
        if !self.writer.contains(name) {
            return Ok(());
        }
        let reason = "it was written twice".to_owned();
        Err(StateError::Malformed {
            name: name.to_owned(),
            reason,
        })
    }

    fn one(&mut self, name: &str, shape: &[u64], values: &[f32]) -> Result<(), StateError> {
        self.refuse_twice(name)?;
        self.writer.tensor(name, shape, values).map_err(host)
    }
}

impl StateSink for LaneSink {
    fn tensor(&mut self, name: &str, values: &[f32]) -> Result<(), StateError> {
        let layout = Arc::clone(&self.layout);
        if values.len() == layout.len() && !values.is_empty() {
            for spec in layout.tensors() {
                let full = format!("{name}.{}", spec.name);
                self.one(&full, &spec.shape, &values[spec.range()])?;
            }
            return Ok(());
        }
        let spec = layout.tensors().iter().find(|spec| {
            spec.len() == values.len()
                && name
                    .strip_suffix(spec.name.as_str())
                    .is_some_and(|rest| rest.ends_with('.'))
        });
        match spec {
            Some(spec) => self.one(name, &spec.shape, values),
            None => self.one(name, &[values.len() as u64], values),
        }
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        self.refuse_twice(name)?;
        self.writer.bytes(name, bytes);
        Ok(())
    }
}
