//! The last round for which this daemon has masked contributions, on disk before they are made. A swarm that goes back
//! to a checkpoint trains the same rounds to the same deltas, and in another group their sum would differ from the
//! one before by what a single member contributed. So no delta is masked again after a restart.

use crate::store::{StoreError, write_atomically};
use murmurate_protocol::{Round, RunId};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The mark, in a daemon's directory.
const FILE: &str = "masked.json";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Masked {
    /// The run, in hexadecimal digits.
    run: String,
    round: u64,
}

/// Marks the last masked round.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    run: String,
    reached: Option<Round>,
}

impl Mark {
    /// Reads the mark of a run in a directory.
    ///
    /// # Errors
    /// If the file cannot be read, or is something else.
    pub(super) fn open(dir: &Path, run: RunId) -> Result<Self, StoreError> {
        let (path, run) = (dir.join(FILE), run.to_hex());
        let masked = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(StoreError::io("read", &path, source)),
            Ok(bytes) => Some(serde_json::from_slice::<Masked>(&bytes).map_err(|error| {
                StoreError::Privacy {
                    path: path.clone(),
                    reason: error.to_string(),
                }
            })?),
        };
        let masked = masked.filter(|masked| masked.run == run);
        Ok(Self {
            path,
            run,
            reached: masked.map(|masked| Round(masked.round)),
        })
    }

    /// The last round whose deltas may be masked already.
    pub(super) fn reached(&self) -> Option<Round> {
        self.reached
    }

    /// Notes that deltas of a round are masked, and returns once that is on the disk.
    ///
    /// # Errors
    /// If it cannot be written; then they must not be masked.
    pub(super) fn reach(&mut self, round: Round) -> Result<(), StoreError> {
        if self.reached >= Some(round) {
            return Ok(());
        }
        let masked = Masked {
            run: self.run.clone(),
            round: round.0,
        };
        let text = serde_json::to_string(&masked).expect("numbers are JSON");
        write_atomically(&self.path, format!("{text}\n").as_bytes())?;
        self.reached = Some(round);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_outlives_the_daemon_and_is_of_one_run() {
        let dir = tempfile::tempdir().unwrap();
        let open = |run: u8| Mark::open(dir.path(), RunId::from_bytes([run; 32])).unwrap();
        let mut mark = open(1);
        assert_eq!(mark.reached(), None);
        mark.reach(Round(7)).unwrap();
        mark.reach(Round(3)).unwrap();
        assert_eq!(open(1).reached(), Some(Round(7)));
        assert_eq!(open(2).reached(), None);
        std::fs::write(dir.path().join(FILE), "7").unwrap();
        let error = Mark::open(dir.path(), RunId::from_bytes([1; 32])).unwrap_err();
        assert!(error.to_string().contains(FILE), "{error}");
    }
}
