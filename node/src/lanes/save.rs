//! Writes a checkpoint: each lane writes its own file, and the mix lane commits both.

use crate::api::StatusHandle;
use crate::store::{
    Best, CheckpointWriter, Expected, LaneFile, Manifest, StoreError, create_private,
};
use murmurate_protocol::{Digest, WorkError};
use murmurate_strategies::Layout;
use murmurate_strategies::executor::{MixLane, TrainLane};
use murmurate_tasks::ModelFileError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The parts of a checkpoint that are not tensors.
#[derive(Debug)]
pub(crate) struct Saver {
    /// The daemon's directory.
    pub dir: PathBuf,
    /// Run, plan and model that the checkpoint belongs to.
    pub expected: Expected,
    /// The run's name.
    pub run_name: String,
    /// This peer's id, hexadecimal.
    pub peer: String,
    /// The effective configuration as TOML.
    pub config: String,
    /// Names and shapes of the parameters.
    pub layout: Arc<Layout>,
    /// Provides the progress.
    pub status: StatusHandle,
}

/// Branches that a daemon keeps beside its checkpoint.
const BRANCHES_KEPT: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The daemon continues from it. It takes the place of the one before.
    Newest,
    /// It stays: the daemon's branch, whose place another state takes.
    Branch,
}

/// A checkpoint whose train lane file is written.
pub(super) struct HalfSaved {
    /// Where it stays, if it is a branch.
    branch: Option<PathBuf>,
    writer: CheckpointWriter,
    train: LaneFile,
    snapshot: Vec<u8>,
    round: u64,
}

fn storage(error: &StoreError) -> WorkError {
    WorkError::Storage {
        reason: error.to_string(),
    }
}

impl Saver {
    pub(super) fn begin(
        &self,
        (round, keep): (u64, Keep),
        snapshot: Vec<u8>,
        lane: &mut TrainLane,
    ) -> Result<HalfSaved, WorkError> {
        let branch = match keep {
            Keep::Newest => None,
            Keep::Branch => Some(next_branch(&self.dir).map_err(|e| storage(&e))?),
        };
        let dir = branch.as_ref().unwrap_or(&self.dir);
        let begun = || -> Result<_, StoreError> {
            let writer = CheckpointWriter::begin(dir, round, Arc::clone(&self.layout))?;
            let sink = writer.sink("train")?;
            Ok((writer, sink))
        };
        let (writer, mut sink) = begun().map_err(|e| storage(&e))?;
        let saved = lane.save(&mut sink);
        saved.map_err(|e| WorkError::Storage {
            reason: e.to_string(),
        })?;
        let train = sink.finish().map_err(|e| storage(&e))?;
        Ok(HalfSaved {
            branch,
            writer,
            train,
            snapshot,
            round,
        })
    }

    pub(super) fn keep_best(&self, best: &Best, lane: &MixLane) -> Result<(), ModelFileError> {
        best.write(&self.dir, &self.expected, &self.layout, lane.anchor())
    }

    /// Completes a checkpoint. Returns where it is, if it is a branch, in words.
    pub(super) fn finish(
        &self,
        half: HalfSaved,
        lane: &MixLane,
    ) -> Result<Option<String>, WorkError> {
        let mut sink = half.writer.sink("mix").map_err(|e| storage(&e))?;
        let saved = lane.save(&mut sink);
        saved.map_err(|e| WorkError::Storage {
            reason: e.to_string(),
        })?;
        let mix = sink.finish().map_err(|e| storage(&e))?;
        let mut manifest = Manifest::new(&self.expected, half.round, self.layout.tensors());
        manifest.run_name.clone_from(&self.run_name);
        manifest.peer.clone_from(&self.peer);
        manifest.config.clone_from(&self.config);
        manifest.digest = Some(Digest::of_all(&lane.digests()).to_hex());
        manifest.set_snapshot(&half.snapshot);
        let status = self.status.status();
        manifest.progress = crate::store::Progress {
            inner_steps: status.inner_steps,
            samples: status.samples,
            train_s: Duration::from_secs_f64(status.train_s.max(0.0)).as_secs_f64(),
            wall_s: status.wall_s,
        };
        half.writer
            .commit(manifest, vec![half.train, mix])
            .map_err(|e| storage(&e))?;
        Ok(half.branch.map(|path| {
            format!(
                "another state takes the place of this daemon's branch, which is saved in {}",
                path.display()
            )
        }))
    }
}

/// The directory of the next branch, `branch-1` and so on. Of those before it only the newest stays.
fn next_branch(dir: &Path) -> Result<PathBuf, StoreError> {
    let entries = std::fs::read_dir(dir).map_err(|e| StoreError::io("read", dir, e))?;
    let number = |name: &str| name.strip_prefix("branch-")?.parse::<u32>().ok();
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut there: Vec<u32> = names.filter_map(|name| number(name.to_str()?)).collect();
    there.sort_unstable();
    let old = there.len().saturating_sub(BRANCHES_KEPT - 1);
    for number in &there[..old] {
        let path = dir.join(format!("branch-{number}"));
        std::fs::remove_dir_all(&path).map_err(|e| StoreError::io("remove", &path, e))?;
    }
    let path = dir.join(format!(
        "branch-{}",
        there.last().map_or(1, |last| last + 1)
    ));
    create_private(&path).map_err(|e| StoreError::io("create", &path, e))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_newest_branches_stay() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("branch-x")).unwrap();
        for number in 1..=4 {
            let path = next_branch(dir.path()).unwrap();
            assert_eq!(path, dir.path().join(format!("branch-{number}")));
        }
        let there = |name: &str| dir.path().join(name).exists();
        let kept = ["branch-1", "branch-2", "branch-3", "branch-4", "branch-x"].map(there);
        assert_eq!(kept, [false, false, true, true, true]);
    }
}
