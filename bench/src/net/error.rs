//! What goes wrong in a benchmark of the network.

use murmurate_net::emulate::RelayError;
use std::io;
use std::net::SocketAddr;

/// What goes wrong in a benchmark of the network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Our endpoint could not be made, or did not listen or dial.
    #[error(transparent)]
    Quic(#[from] murmurate_net::quic::Error),
    /// The emulated network could not be set up.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// Nothing could be bound.
    #[error("nothing can listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The far end could not be reached, or the connection failed.
    #[error("{doing} failed: {reason}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What the way says about it.
        reason: String,
    },
    /// A transfer came to no end.
    #[error(
        "the far end said nothing for {seconds} s after the transfer had to be over; is the path up?"
    )]
    Late {
        /// How long it was waited.
        seconds: u64,
    },
    /// A process of its own could not be started, or ended early.
    #[error("the {end} end's process {what}")]
    Process {
        /// Which end.
        end: &'static str,
        /// What it did.
        what: String,
    },
    /// What another end said is not understood.
    #[error("what the {end} end said is not understood ({reason}); run the same version on both")]
    Words {
        /// Which end.
        end: &'static str,
        /// Why.
        reason: String,
    },
    /// A setting that cannot be.
    #[error("{setting}: {message}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// What to give instead.
        message: String,
    },
}

impl BenchError {
    /// `map_err` for what fails with words of its own.
    pub(super) fn failed<E: std::fmt::Display>(doing: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Failed {
            doing,
            reason: error.to_string(),
        }
    }
}
