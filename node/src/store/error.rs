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
        "no space left while writing {}; earlier checkpoints are intact, free some space",
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
    /// The count of private contributions cannot be read.
    #[error(
        "{} is not the count of this directory's private contributions ({reason}); restore it from a copy. Without \
         it their number is not known, and no promise about this data can be kept",
        path.display()
    )]
    Privacy {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
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
    /// The files of a checkpoint are there, and the manifest that names them is gone.
    #[error(
        "{} holds {files} but no checkpoint.json, which says that it is whole: {}, or move {files} away to start \
         afresh",
        dir.display(),
        put_back(dir, files, *copied)
    )]
    Orphaned {
        /// Path of the daemon's directory.
        dir: PathBuf,
        /// Name of the directory with the checkpoint's files.
        files: String,
        /// Set where a copy of the manifest is in it.
        copied: bool,
    },
    /// Nothing says in which rounds the daemon may have voted.
    #[error(
        "{} is damaged, and no file says in which rounds this daemon has voted, so the others would count \
         nothing of it: restore the file, or enter the run as a new member in a new directory \
         (`murmurate run --dir NEW --invite FILE`)",
        .0.display()
    )]
    Votes(PathBuf),
    /// The directory contains no checkpoint, but one is needed.
    #[error("{} holds no checkpoint: a daemon saves one at the end of a round when `daemon.save_every_s` (60 by default) have passed, after the last round, and when it leaves; wait for that, or give the directory of a daemon that has saved", .0.display())]
    NoCheckpoint(PathBuf),
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

/// How to go on from a checkpoint whose manifest is gone.
fn put_back(dir: &Path, files: &str, copied: bool) -> String {
    if copied {
        format!(
            "copy {files}/checkpoint.json to {} to go on from it",
            dir.display()
        )
    } else {
        "restore checkpoint.json to go on from it".to_owned()
    }
}

/// What to do about a damaged file. A daemon begins afresh without its checkpoint; a model that was named has no
/// other.
fn way_out(path: &Path) -> &'static str {
    let of_checkpoint = path.ancestors().any(|path| named(path, "checkpoint"));
    match (of_checkpoint, named(path, "best")) {
        (true, _) => {
            "restore it, or move checkpoint.json and the directories checkpoint-* away to start afresh"
        }
        (_, true) => "restore it, or move it away to start afresh",
        _ => "give a file that `murmurate export` or another program has written whole",
    }
}

fn named(path: &Path, start: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(start))
}
