//! The manifest: it says what a checkpoint belongs to, and contains the hashes of its files.

use crate::store::tensors::TensorFile;
use murmurate_protocol::{LayoutHash, PlanHash, RunId};
use murmurate_strategies::TensorSpec;
use serde::{Deserialize, Serialize};

/// Version of the checkpoint format.
pub const MANIFEST_VERSION: u32 = 1;

/// The value of the checksum field while the checksum is computed.
const NO_CHECKSUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Description of a checkpoint. It is written last, and its rename commits the checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// The saved state is that at the start of this round.
    pub round: u64,
    /// Number of earlier checkpoints in this directory; set by the writer.
    pub generation: u64,
    /// Name of the directory with the files; set by the writer.
    pub directory: String,
    /// The run's name.
    pub run_name: String,
    /// The run's id, hexadecimal.
    pub run: String,
    /// The plan's hash, hexadecimal.
    pub plan: String,
    /// The layout's hash, hexadecimal.
    pub layout: String,
    /// Id of the peer that wrote it, hexadecimal.
    pub peer: String,
    /// Digest of the parameters as shown by `/status`, hexadecimal.
    pub digest: Option<String>,
    /// The peer's own snapshot, hexadecimal.
    pub snapshot: String,
    /// The effective configuration as TOML. `export` and `eval` rebuild the model from it.
    pub config: String,
    /// The model's tensors, in the order of the flat parameters.
    pub tensors: Vec<TensorSpec>,
    /// Progress of the daemon at this point.
    pub progress: Progress,
    /// The files with their hashes; set by the writer.
    pub files: Vec<TensorFile>,
    /// BLAKE3, in hexadecimal, of the manifest with sixty-four zeros in this field; set by the
    /// writer.
    pub checksum: String,
}

/// Progress of a daemon at a checkpoint. A resumed daemon continues its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Number of inner steps.
    pub inner_steps: u64,
    /// Number of samples.
    pub samples: u64,
    /// Seconds spent in inner steps.
    pub train_s: f64,
    /// Seconds since the first round began, without the time between lives.
    pub wall_s: f64,
}

/// Run, plan and model that a checkpoint must belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Id of the run.
    pub run: RunId,
    /// Hash of the plan.
    pub plan: PlanHash,
    /// Hash of the model's layout.
    pub layout: LayoutHash,
}

impl Manifest {
    /// The number of rounds of the run that wrote the checkpoint; zero means no end. `None` if its
    /// configuration does not say.
    pub fn rounds(&self) -> Option<u64> {
        let config: toml::Table = toml::from_str(&self.config).ok()?;
        let rounds = config.get("run")?.get("rounds")?.as_integer()?;
        u64::try_from(rounds).ok()
    }

    /// A manifest for a checkpoint of `expected` at `round`. The caller sets the remaining fields,
    /// except for the directory, the files and the checksum, which the writer sets.
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
            checksum: NO_CHECKSUM.to_owned(),
        }
    }

    /// The text of the file, with its checksum.
    ///
    /// # Errors
    /// If it cannot be encoded as JSON.
    pub(super) fn text(&self) -> serde_json::Result<String> {
        let bare = Self {
            checksum: NO_CHECKSUM.to_owned(),
            ..self.clone()
        };
        let text = serde_json::to_string_pretty(&bare)?;
        let sum = blake3::hash(text.as_bytes()).to_hex();
        // The checksum is the last field, so the last match is the right one.
        let at = text.rfind(NO_CHECKSUM).unwrap_or(text.len());
        let (before, after) = text.split_at(at);
        Ok(before.to_owned() + sum.as_str() + after.trim_start_matches('0'))
    }

    /// Checks the checksum against `text`, from which this manifest was read.
    pub(super) fn is_whole(&self, text: &str) -> bool {
        let Some((before, after)) = text.rsplit_once(&self.checksum) else {
            return false;
        };
        let mut hasher = blake3::Hasher::new();
        for part in [before, NO_CHECKSUM, after] {
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().as_str() == self.checksum
    }

    /// Stores the peer's snapshot.
    pub fn set_snapshot(&mut self, bytes: &[u8]) {
        use std::fmt::Write;
        self.snapshot.clear();
        for b in bytes {
            // Writing to a String cannot fail.
            let _ = write!(self.snapshot, "{b:02x}");
        }
    }

    /// The peer's snapshot; `None` if the text is not hexadecimal.
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
    fn a_changed_text_does_not_have_its_checksum() {
        let expected = Expected {
            run: RunId::from_bytes([1; 32]),
            plan: PlanHash::from_bytes([2; 32]),
            layout: LayoutHash::from_bytes([0; 32]),
        };
        let mut manifest = Manifest::new(&expected, 7, &[]);
        manifest.progress.wall_s = 0.1 + 0.2;
        let text = manifest.text().unwrap();
        let read: Manifest = serde_json::from_str(&text).unwrap();
        assert!(read.is_whole(&text));
        for index in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[index] ^= 1;
            let Ok(changed) = String::from_utf8(changed) else {
                continue;
            };
            let read = serde_json::from_str::<Manifest>(&changed);
            assert!(!read.is_ok_and(|m| m.is_whole(&changed)), "{index}");
        }
    }

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
