//! Writes a checkpoint beside the last one and commits it with one rename.

use super::{LaneFile, LaneSink, MANIFEST, Manifest, directory_name, is_directory_name};
use crate::store::StoreError;
use crate::store::files::{PRIVATE, create, create_private, sync_directory, write_private};
use murmurate_strategies::Layout;
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
        let last = super::reader::read_manifest(dir)?;
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
