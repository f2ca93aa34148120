//! Errors of a daemon's directory. Each message names the file and says what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a daemon's directory, or a file in it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another daemon uses the directory.
    #[error(
        "{} is in use by {holder}; stop that daemon or give another --dir",
        dir.display()
    )]
    InUse {
        /// Path of the directory.
        dir: PathBuf,
        /// The process that uses it, such as `process 4711`.
        holder: String,
    },
    /// The disk is full. The earlier files are intact.
    #[error(
        "no space left while writing {}; the previous checkpoint is intact, free some space",
        path.display()
    )]
    Full {
        /// The file that could not be written.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The identity file is invalid.
    #[error("{} is not an identity: {reason}", path.display())]
    Identity {
        /// Path of the file.
        path: PathBuf,
        /// The problem and what to do.
        reason: String,
    },
    /// The checkpoint is damaged.
    #[error("{} is damaged ({reason}); {}", path.display(), way_out(path))]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The checkpoint belongs to another run, plan or model, or has another version.
    #[error(
        "{} belongs to another {what} (it has {found}, this configuration gives {expected}); \
         use the configuration it was made with, or give another --dir",
        path.display()
    )]
    Foreign {
        /// Path of the manifest.
        path: PathBuf,
        /// What differs: `run`, `plan`, `model` or `version`.
        what: &'static str,
        /// The value in the checkpoint.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// The stored addresses of peers cannot be read.
    #[error("{} is ignored ({reason}); give --join an address if no peer is found", path.display())]
    KnownPeers {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The directory contains no checkpoint, but one is needed.
    #[error("{} holds no checkpoint: a daemon saves one at the end of a round when `daemon.save_every_s` (60 by default) have passed, after the last round, and when it leaves; wait for that, or give the directory of a daemon that has saved", dir.display())]
    NoCheckpoint {
        /// Path of the directory.
        dir: PathBuf,
    },
}

impl StoreError {
    /// Wraps the system's error. A full disk becomes a variant of its own.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                path: path.to_owned(),
            },
            _ => Self::Io {
                action,
                path: path.to_owned(),
                source,
            },
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// What to do about a damaged file. A daemon begins afresh without its checkpoint; a model that was named has no
/// other.
fn way_out(path: &Path) -> &'static str {
    let in_checkpoint = path.ancestors().skip(1).any(is_checkpoint) || is_checkpoint(path);
    match in_checkpoint {
        true => "restore it, or move it away to start afresh",
        false => "give a file that `murmurate export` or another program has written whole",
    }
}

fn is_checkpoint(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("checkpoint") || name.starts_with("best"))
}
