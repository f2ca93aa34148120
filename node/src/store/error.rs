//! What can go wrong with a daemon's directory. Every line names the file and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a daemon's directory, or something in it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another daemon uses the directory.
    #[error(
        "{} is in use by {holder}; stop that daemon or give another --dir",
        dir.display()
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Who holds it, such as `process 4711`.
        holder: String,
    },
    /// The disk is full. What was there before is intact.
    #[error(
        "no space left while writing {}; the previous checkpoint is intact, free some space",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The identity is not one.
    #[error("{} is not an identity: {reason}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The checkpoint is damaged.
    #[error("{} is damaged ({reason}); restore it, or move it away to start afresh", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The checkpoint belongs to something else.
    #[error(
        "{} belongs to another {what} (it has {found}, this configuration gives {expected}); \
         use the configuration it was made with, or give another --dir",
        path.display()
    )]
    Foreign {
        /// The manifest.
        path: PathBuf,
        /// `run`, `plan`, `model` or `version`.
        what: &'static str,
        /// What it has.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The addresses of an earlier life's peers cannot be read.
    #[error("{} is ignored ({reason}); give --join an address if no peer is found", path.display())]
    KnownPeers {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no checkpoint where one is needed.
    #[error("{} holds no checkpoint; give the directory of a daemon that has saved one", dir.display())]
    NoCheckpoint {
        /// The directory.
        dir: PathBuf,
    },
}

impl StoreError {
    /// Wraps what the system said, telling a full disk from the rest.
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
