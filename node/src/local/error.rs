//! Why a local swarm cannot start or breaks.

use crate::config::ConfigError;
use crate::membership::MembershipError;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Why a local swarm cannot start or breaks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The value of a flag is wrong.
    #[error("{flag}: {message}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// The problem and what to do.
        message: String,
    },
    /// The run key of the swarm cannot be made.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// A daemon's configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The swarm's directory cannot be used.
    #[error("--dir: {}: {reason}; give a directory that can be written", path.display())]
    Directory {
        /// The directory's path.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The directory of the records cannot be used.
    #[error("--record: {}: {reason}; give a directory that can be written", path.display())]
    Records {
        /// The directory's path.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// A daemon could not be started.
    #[error("daemon {index} could not be started: {reason}")]
    Spawn {
        /// Index of the daemon, from zero.
        index: usize,
        /// The system's error.
        reason: String,
    },
    /// A daemon ended without being told to.
    #[error("daemon {index} ended unexpectedly ({status}); its last output: {words}")]
    Died {
        /// Index of the daemon, from zero.
        index: usize,
        /// Its exit status.
        status: String,
        /// The last lines of its stderr.
        words: String,
    },
    /// The emulated network cannot start.
    #[error("--link: {0}")]
    Network(#[from] murmurate_net::emulate::RelayError),
    /// Signal handlers cannot be installed.
    #[error("cannot listen to signals: {0}")]
    Signals(String),
    /// An expected event did not come in time.
    #[error("{what} after {seconds} s; the daemons were ended")]
    Stuck {
        /// The expected event.
        what: String,
        /// The time limit in seconds.
        seconds: u64,
    },
}

impl LocalError {
    /// Makes an error of a flag from the error of its value.
    pub(super) fn of_flag<E: Display>(flag: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Flag {
            flag,
            message: error.to_string(),
        }
    }

    /// Makes an error of a directory from the reason why it cannot be used.
    pub(super) fn of_directory<E: Display>(path: &Path) -> impl FnOnce(E) -> Self {
        move |error| Self::Directory {
            path: path.to_owned(),
            reason: error.to_string(),
        }
    }
}
