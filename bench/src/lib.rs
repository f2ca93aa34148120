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

/// Why a benchmark failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The value of a flag is not possible.
    #[error("{flag}: {message}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What to give instead.
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
    /// The network benchmark failed.
    #[error(transparent)]
    Net(#[from] crate::net::BenchError),
    /// The configuration derived from the flags is invalid.
    #[error(transparent)]
    Config(#[from] murmurate_node::config::ConfigError),
}
