//! The parameters with the lowest loss on held-out data: one file in the daemon's directory, in the
//! format of exported models, replaced as a whole.

use super::files::PRIVATE;
use super::tensors::TensorReader;
use super::{Expected, StoreError};
use murmurate_strategies::Layout;
use murmurate_tasks::{ModelFileError, write_model};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FILE: &str = "best.safetensors";

/// The evaluation of the best parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The round that the parameters open.
    pub round: u64,
    /// Mean loss, in nats.
    pub loss: f64,
    /// Accuracy, where the task has one.
    pub accuracy: Option<f64>,
}

impl Best {
    /// Path of the file in a daemon's directory.
    pub fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// What the file in a daemon's directory says; `None` if there is none of this run and model.
    pub fn read(dir: &Path, expected: &Expected) -> Option<Self> {
        let reader = TensorReader::open(&Self::path(dir)).ok()?;
        let is = |key, value: String| reader.description(key) == Some(&value);
        if !is("run", expected.run.to_hex()) || !is("layout", expected.layout.to_hex()) {
            return None;
        }
        let number = |key| reader.description(key)?.parse::<f64>().ok();
        Some(Self {
            round: reader.description("round")?.parse().ok()?,
            loss: number("loss")?,
            accuracy: number("accuracy"),
        })
    }

    /// Writes these parameters. A crash at any instant leaves the old or the new file.
    ///
    /// # Errors
    /// If the file cannot be written. The old one is then unchanged.
    pub fn write(
        &self,
        dir: &Path,
        expected: &Expected,
        layout: &Layout,
        parameters: &[f32],
    ) -> Result<(), ModelFileError> {
        let about = [
            ("format", Some("pt".to_owned())),
            ("run", Some(expected.run.to_hex())),
            ("layout", Some(expected.layout.to_hex())),
            ("round", Some(self.round.to_string())),
            ("loss", Some(self.loss.to_string())),
            ("accuracy", self.accuracy.map(|a| a.to_string())),
        ];
        let known = about.into_iter();
        let about = known.filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let about: BTreeMap<String, String> = about.collect();
        write_model(&Self::path(dir), layout, parameters, &about)?;
        // The directory is private already; a failure here leaks nothing by itself.
        #[cfg(unix)]
        let _ = std::fs::set_permissions(
            Self::path(dir),
            std::os::unix::fs::PermissionsExt::from_mode(PRIVATE),
        );
        Ok(())
    }

    /// Reads the round and the parameters of the file in a daemon's directory.
    ///
    /// # Errors
    /// If there is none, or it is of another model.
    pub fn parameters(dir: &Path, layout: &Layout) -> Result<(u64, Vec<f32>), StoreError> {
        let path = Self::path(dir);
        let reader = TensorReader::open(&path)?;
        let round = reader.description("round").and_then(|r| r.parse().ok());
        let damaged = |reason: String| StoreError::damaged(&path, reason);
        let round = round.ok_or_else(|| damaged("it does not say its round".to_owned()))?;
        let values = murmurate_tasks::read_model(&path, layout);
        Ok((round, values.map_err(|e| damaged(e.to_string()))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{LayoutHash, PlanHash, RunId};

    #[test]
    fn the_best_is_read_as_it_was_written_and_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new([("w", vec![2, 2])]);
        let expected = Expected {
            run: RunId::from_bytes([1; 32]),
            plan: PlanHash::from_bytes([2; 32]),
            layout: layout.hash(),
        };
        assert_eq!(Best::read(dir.path(), &expected), None);
        let mut best = Best {
            round: 7,
            loss: 0.1 + 0.2,
            accuracy: None,
        };
        best.write(dir.path(), &expected, &layout, &[1.0; 4])
            .unwrap();
        (best.round, best.accuracy) = (9, Some(0.75));
        best.write(dir.path(), &expected, &layout, &[2.0; 4])
            .unwrap();
        assert_eq!(Best::read(dir.path(), &expected), Some(best));
        let (round, values) = Best::parameters(dir.path(), &layout).unwrap();
        assert_eq!((round, values), (9, vec![2.0; 4]));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let other = Expected {
            layout: LayoutHash::from_bytes([3; 32]),
            ..expected
        };
        assert_eq!(Best::read(dir.path(), &other), None);
    }
}
