//! The manifest: what a checkpoint is of, and the hashes of its files.

use crate::store::tensors::TensorFile;
use murmurate_protocol::{LayoutHash, PlanHash, RunId};
use murmurate_strategies::TensorSpec;
use serde::{Deserialize, Serialize};

/// The version of the checkpoint's form.
pub const MANIFEST_VERSION: u32 = 1;

/// What a checkpoint is of. Written last; its rename is the commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// The round that the saved state opens.
    pub round: u64,
    /// Counts the checkpoints of this directory; set by the writer.
    pub generation: u64,
    /// Where the files lie; set by the writer.
    pub directory: String,
    /// The run's name.
    pub run_name: String,
    /// Its id, hexadecimal.
    pub run: String,
    /// The plan's hash, hexadecimal.
    pub plan: String,
    /// The layout's hash, hexadecimal.
    pub layout: String,
    /// The peer that wrote it, hexadecimal.
    pub peer: String,
    /// Digest of the parameters as `/status` shows it, hexadecimal.
    pub digest: Option<String>,
    /// The peer's own snapshot, hexadecimal.
    pub snapshot: String,
    /// The configuration it was made with, TOML: `export` and `eval` rebuild the model from it.
    pub config: String,
    /// The model's tensors in the order of the flat parameters.
    pub tensors: Vec<TensorSpec>,
    /// What had been done by then.
    pub progress: Progress,
    /// The files with their hashes; set by the writer.
    pub files: Vec<TensorFile>,
}

/// What a daemon had done when it wrote a checkpoint: reports go on from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Inner steps in all.
    pub inner_steps: u64,
    /// Samples seen in all.
    pub samples: u64,
    /// Seconds in inner steps.
    pub train_s: f64,
    /// Seconds since the first round began, breaks not counted.
    pub wall_s: f64,
}

/// What a daemon needs its checkpoint to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The run.
    pub run: RunId,
    /// The plan.
    pub plan: PlanHash,
    /// The model.
    pub layout: LayoutHash,
}

impl Manifest {
    /// A manifest for a checkpoint of `expected` at `round`; the remaining fields are the caller's
    /// to fill, those of place and files the writer's.
    pub fn new(expected: &Expected, round: u64, tensors: &[TensorSpec]) -> Self {
        Self {
            version: MANIFEST_VERSION,
            round,
            generation: 0,
            directory: String::new(),
            run_name: String::new(),
            run: expected.run.to_hex(),
            plan: expected.plan.to_hex(),
            layout: expected.layout.to_hex(),
            peer: String::new(),
            digest: None,
            snapshot: String::new(),
            config: String::new(),
            tensors: tensors.to_vec(),
            progress: Progress::default(),
            files: Vec::new(),
        }
    }

    /// Keeps the peer's snapshot.
    pub fn set_snapshot(&mut self, bytes: &[u8]) {
        use std::fmt::Write;
        self.snapshot.clear();
        for b in bytes {
            // Writing to a String cannot fail.
            let _ = write!(self.snapshot, "{b:02x}");
        }
    }

    /// The peer's snapshot, `None` when the digits are not hexadecimal.
    pub fn snapshot(&self) -> Option<Vec<u8>> {
        let digits = self.snapshot.as_bytes();
        if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.chunks_exact(2).map(byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_round_trips_and_nonsense_is_none() {
        let expected = Expected {
            run: RunId::from_bytes([1; 32]),
            plan: PlanHash::from_bytes([2; 32]),
            layout: LayoutHash::from_bytes([3; 32]),
        };
        let mut manifest = Manifest::new(&expected, 7, &[]);
        manifest.set_snapshot(&[0, 255, 16]);
        assert_eq!(manifest.snapshot, "00ff10");
        assert_eq!(manifest.snapshot().unwrap(), [0, 255, 16]);
        manifest.snapshot = "0g".to_owned();
        assert_eq!(manifest.snapshot(), None);
        manifest.snapshot = "000".to_owned();
        assert_eq!(manifest.snapshot(), None);
    }
}
