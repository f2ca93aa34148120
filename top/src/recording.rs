//! Event logs that were recorded: what happened to one daemon, and what others that logged it too did
//! meanwhile.

use murmurate_node::events::{Entry, Skipped, merge, read_dir, read_file};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The logs of one or more daemons, in one order.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The daemon that is watched: that of the first log.
    pub(crate) me: String,
    pub(crate) entries: Vec<Entry>,
    /// Names of the daemons, after the directories of their logs.
    pub(crate) names: BTreeMap<String, String>,
    skipped: Skipped,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file cannot be read.
    #[error("--replay: {}: {reason}; give an events.jsonl, or the directory of a daemon that has run", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A file has no entry.
    #[error("--replay: {} has no entry of this version of the log ({found}); give another events.jsonl", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// Its content, in words.
        found: String,
    },
}

impl Recording {
    /// Reads logs: files, or the directories of daemons.
    ///
    /// # Errors
    /// If one cannot be read or has no entry. Lines that are no entries are counted, not errors.
    pub fn read(paths: &[PathBuf]) -> Result<Self, RecordingError> {
        let mut logs = Vec::new();
        let mut names = BTreeMap::new();
        let mut skipped = Skipped::default();
        for path in paths {
            let read = if path.is_dir() {
                read_dir(path)
            } else {
                read_file(path)
            };
            let (entries, left_out) = read.map_err(|reason| RecordingError::Unreadable {
                path: path.clone(),
                reason,
            })?;
            let Some(first) = entries.first() else {
                return Err(RecordingError::Empty {
                    path: path.clone(),
                    found: words(left_out).unwrap_or_else(|| "it is empty".to_owned()),
                });
            };
            if let Some(name) = name(path).filter(|_| paths.len() > 1) {
                names.insert(first.daemon.clone(), name);
            }
            skipped.other_version += left_out.other_version;
            skipped.unreadable += left_out.unreadable;
            logs.push(entries);
        }
        let me = logs.first().and_then(|log| log.first());
        Ok(Self {
            me: me.map(|entry| entry.daemon.clone()).unwrap_or_default(),
            entries: merge(logs),
            names,
            skipped,
        })
    }

    /// Lines that were left out, in words, if there were any.
    pub fn left_out(&self) -> Option<String> {
        words(self.skipped).map(|words| format!("--replay: left out {words}"))
    }
}

/// Lines that are no entries, in words.
fn words(skipped: Skipped) -> Option<String> {
    let counted = [
        (skipped.other_version, "of another version"),
        (skipped.unreadable, "torn or no entries"),
    ];
    let parts = counted.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| format!("{count} lines {what}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn name(path: &Path) -> Option<String> {
    let dir = if path.is_dir() {
        Some(path)
    } else {
        path.parent()
    };
    let name = dir?.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(v: u32, seq: u64) -> String {
        format!(
            "{{\"v\":{v},\"seq\":{seq},\"time\":{seq}.5,\"daemon\":\"ab\",\"round\":0,\"kind\":\"saved\"}}\n"
        )
    }

    fn read(text: &str) -> Result<Recording, RecordingError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("events.jsonl");
        std::fs::write(&file, text).unwrap();
        Recording::read(&[file])
    }

    #[test]
    fn a_torn_log_is_shown_without_its_torn_line() {
        let whole = line(1, 1) + &line(1, 2);
        let torn = &(whole.clone() + &line(1, 3))[..whole.len() + 20];
        let recording = read(torn).unwrap();
        assert_eq!((recording.entries.len(), recording.me.as_str()), (2, "ab"));
        let left_out = recording.left_out().unwrap();
        assert_eq!(left_out, "--replay: left out 1 lines torn or no entries");
        assert_eq!(read(&whole).unwrap().left_out(), None);
    }

    #[test]
    fn a_log_of_another_version_is_refused_and_named() {
        let error = read(&(line(2, 1) + &line(2, 2))).unwrap_err().to_string();
        assert!(error.contains("(2 lines of another version)"), "{error}");
        let error = read("").unwrap_err().to_string();
        assert!(error.contains("(it is empty)"), "{error}");
        let mixed = read(&(line(2, 1) + &line(1, 2))).unwrap();
        assert_eq!(mixed.entries.len(), 1);
        assert!(
            mixed
                .left_out()
                .unwrap()
                .contains("1 lines of another version")
        );
    }

    #[test]
    fn a_missing_log_is_an_error_that_says_what_to_give() {
        let error = Recording::read(&["no-such-file".into()])
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("--replay: no-such-file: "), "{error}");
        assert!(error.contains("give an events.jsonl"), "{error}");
    }
}
