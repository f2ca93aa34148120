//! Writes a checkpoint: each lane writes its own file, and the mix lane commits both.

use crate::api::StatusHandle;
use crate::store::{Best, CheckpointWriter, Expected, LaneFile, Manifest, StoreError};
use murmurate_protocol::{Digest, WorkError};
use murmurate_strategies::Layout;
use murmurate_strategies::executor::{MixLane, TrainLane};
use murmurate_tasks::ModelFileError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The parts of a checkpoint that are not tensors.
#[derive(Debug)]
pub struct Saver {
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

/// A checkpoint whose train lane file is written.
pub(super) struct HalfSaved {
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
        round: u64,
        snapshot: Vec<u8>,
        lane: &mut TrainLane,
    ) -> Result<HalfSaved, WorkError> {
        let begun = || -> Result<_, StoreError> {
            let writer = CheckpointWriter::begin(&self.dir, round, Arc::clone(&self.layout))?;
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
            writer,
            train,
            snapshot,
            round,
        })
    }

    /// Writes the anchor to the file of the best parameters.
    pub(super) fn keep_best(&self, best: &Best, lane: &MixLane) -> Result<(), ModelFileError> {
        best.write(&self.dir, &self.expected, &self.layout, lane.anchor())
    }

    pub(super) fn finish(&self, half: HalfSaved, lane: &MixLane) -> Result<(), WorkError> {
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
        manifest.digest = Some(whole(&lane.digests()).to_hex());
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
            .map_err(|e| storage(&e))
    }
}

/// One hash over the digests of all fragments, computed as in the peer.
fn whole(digests: &[Digest]) -> Digest {
    match digests {
        [only] => *only,
        many => {
            let bytes: Vec<u8> = many.iter().flat_map(|d| *d.as_bytes()).collect();
            Digest::of(&bytes)
        }
    }
}
