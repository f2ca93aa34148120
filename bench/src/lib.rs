//! Benchmarks of the daemon's parts, over real processes. `murmurate bench` runs them.
//!
//! [`exchange`] measures whole averaging rounds. The parent starts one process for each peer; each
//! runs the daemon with a [`Still`](exchange::Still) trainer instead of a model, and prints one
//! [`PeerTimes`](exchange::PeerTimes) line. [`join`] measures how a newcomer takes over their state. [`net`] measures plain transfers between two processes,
//! over our bulk connections and over alternatives. [`codecs`] measures encoding and decoding on
//! one core. [`run_net`] starts its processes, which run
//! this program.

pub mod codecs;
mod ends;
pub mod exchange;
pub mod join;
pub mod net;

pub use ends::{listen_net, net_end, net_table, parse_bytes, run_net};

use std::io;
use std::net::SocketAddr;

/// Why a benchmark failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The value of a flag or of a setting is not possible.
    #[error("{flag}: {message}")]
    Flag {
        /// The flag, or the name of the setting.
        flag: &'static str,
        /// Values that are possible.
        message: String,
    },
    /// A process could not be started, or its directory could not be created.
    #[error("peer {peer} could not be started: {reason}")]
    Start {
        /// Index of the peer, from zero.
        peer: usize,
        /// The reason.
        reason: String,
    },
    /// A process ended without a result.
    #[error("peer {peer} ended without a result; its last output: {words}")]
    Silent {
        /// Index of the peer, from zero.
        peer: usize,
        /// The last output of the process.
        words: String,
    },
    /// The peers did not end in time.
    #[error("the peers did not end within {seconds} s; give fewer --rounds or --params")]
    Late {
        /// How long the benchmark waited.
        seconds: u64,
    },
    /// The daemon of a peer failed.
    #[error(transparent)]
    Daemon(#[from] murmurate_node::daemon::DaemonError),
    /// The emulated network could not be set up.
    #[error(transparent)]
    Network(#[from] murmurate_node::local::LocalError),
    /// Our endpoint could not be created, or could not listen or dial.
    #[error(transparent)]
    Quic(#[from] murmurate_net::quic::Error),
    /// The emulated link between two ends could not be set up.
    #[error(transparent)]
    Relay(#[from] murmurate_net::emulate::RelayError),
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
    NoAnswer {
        /// How long the near end waited.
        seconds: u64,
    },
    /// The process of an end could not be started, or ended early.
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
    /// The configuration derived from the flags is invalid.
    #[error(transparent)]
    Config(#[from] murmurate_node::config::ConfigError),
}

impl BenchError {
    /// Returns a closure for `map_err` that adds the attempted operation to an error.
    pub(crate) fn failed<E: std::fmt::Display>(doing: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Failed {
            doing,
            reason: error.to_string(),
        }
    }
}

/// User and system time of all threads of this process.
pub(crate) fn cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    std::time::Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Pages that this process has touched for the first time, by `/proc`; zero where there is none. A huge page counts
/// once.
pub(crate) fn fresh_pages() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in brackets, may have blanks. Minor faults are the eighth field after it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let faults = fields.split_whitespace().nth(7);
    faults.and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

/// The median; for an even count, the upper of the two middle values.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Refuses the value of a flag, and says what to give instead.
pub(crate) fn wrong<T>(flag: &'static str, message: impl Into<String>) -> Result<T, BenchError> {
    let message = message.into();
    Err(BenchError::Flag { flag, message })
}
