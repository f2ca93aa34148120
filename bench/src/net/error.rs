//! Errors of a benchmark of the network.

use murmurate_net::emulate::RelayError;
use std::io;
use std::net::SocketAddr;

/// Why a benchmark of the network failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Our endpoint could not be created, or could not listen or dial.
    #[error(transparent)]
    Quic(#[from] murmurate_net::quic::Error),
    /// The emulated network could not be set up.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// An address could not be bound.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The far end could not be reached, or the connection failed.
    #[error("{doing} failed: {reason}")]
    Failed {
        /// The attempted operation.
        doing: &'static str,
        /// The way's error.
        reason: String,
    },
    /// A transfer did not end.
    #[error(
        "no answer from the far end {seconds} s after the end of the transfer; check that the path is up"
    )]
    Late {
        /// How long the near end waited.
        seconds: u64,
    },
    /// A process could not be started, or ended early.
    #[error("the {end} end's process {what}")]
    Process {
        /// The end that it runs.
        end: &'static str,
        /// The error, or how the process ended.
        what: String,
    },
    /// A message of another end cannot be parsed.
    #[error("cannot parse the message of the {end} end ({reason}); run the same version on both")]
    Words {
        /// The other end.
        end: &'static str,
        /// The reason.
        reason: String,
    },
    /// A setting is invalid.
    #[error("{setting}: {message}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Values that are possible.
        message: String,
    },
}

impl BenchError {
    /// Returns a closure for `map_err` that adds the attempted operation to an error.
    pub(super) fn failed<E: std::fmt::Display>(doing: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Failed {
            doing,
            reason: error.to_string(),
        }
    }
}
