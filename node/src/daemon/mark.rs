//! The last round for which this daemon has masked contributions, on disk before they are made. A swarm that goes back
//! to a checkpoint trains the same rounds to the same deltas, and in another group their sum would differ from the
//! one before by what a single member contributed. So no delta is masked again after a restart.

use crate::store::{StoreError, write_atomically};
use murmurate_protocol::{Round, RunId};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The mark, in a daemon's directory.
const FILE: &str = "masked.json";

/// Marks the last masked round.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    run: String,
    /// The last masked round of each run, by its id in hexadecimal digits.
    masked: BTreeMap<String, u64>,
}

impl Mark {
    /// Reads the mark of a run in a directory. Without the file, the deltas of a checkpoint's round may be masked.
    ///
    /// # Errors
    /// If the file cannot be read, or is something else.
    pub(super) fn open(dir: &Path, run: RunId, saved: Option<Round>) -> Result<Self, StoreError> {
        let (path, run) = (dir.join(FILE), run.to_hex());
        let masked = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => saved
                .into_iter()
                .map(|round| (run.clone(), round.0))
                .collect(),
            Err(source) => return Err(StoreError::io("read", &path, source)),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| StoreError::Privacy {
                path: path.clone(),
                reason: error.to_string(),
            })?,
        };
        Ok(Self { path, run, masked })
    }

    /// The last round whose deltas may be masked already.
    pub(super) fn reached(&self) -> Option<Round> {
        self.masked.get(&self.run).copied().map(Round)
    }

    /// Notes that deltas of a round are masked, and returns once that is on the disk.
    ///
    /// # Errors
    /// If it cannot be written; then they must not be masked.
    pub(super) fn reach(&mut self, round: Round) -> Result<(), StoreError> {
        if self.reached() >= Some(round) {
            return Ok(());
        }
        let mut masked = self.masked.clone();
        masked.insert(self.run.clone(), round.0);
        let text = serde_json::to_string(&masked).expect("numbers are JSON");
        write_atomically(&self.path, format!("{text}\n").as_bytes())?;
        self.masked = masked;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_outlives_the_daemon_and_each_run_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let id = |run: u8| RunId::from_bytes([run; 32]);
        let open = |run: u8| Mark::open(dir.path(), id(run), Some(Round(2))).unwrap();
        let fresh = Mark::open(dir.path(), id(1), None).unwrap();
        assert_eq!(fresh.reached(), None);
        let mut mark = open(1);
        assert_eq!(mark.reached(), Some(Round(2)), "the file is lost");
        mark.reach(Round(7)).unwrap();
        mark.reach(Round(3)).unwrap();
        assert_eq!(open(1).reached(), Some(Round(7)));
        assert_eq!(open(2).reached(), None);
        open(2).reach(Round(4)).unwrap();
        assert_eq!(open(1).reached(), Some(Round(7)));
        std::fs::write(dir.path().join(FILE), "7").unwrap();
        let error = Mark::open(dir.path(), id(1), None).unwrap_err();
        assert!(error.to_string().contains(FILE), "{error}");
    }
}
