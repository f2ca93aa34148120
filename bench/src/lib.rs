//! Benchmarks of the daemon's parts, over real processes. `murmurate bench` runs them.
//!
//! [`exchange`] times whole averaging rounds: the parent starts one process for each peer, each runs
//! the daemon with a [`Still`](exchange::Still) trainer in place of a model, and prints one
//! [`PeerTimes`](exchange::PeerTimes) line. [`net`] times bare bytes between two processes, by our
//! bulk connections and by the alternatives; [`run_net`] starts its processes, which are this
//! program again.

mod ends;
pub mod exchange;
pub mod net;

pub use ends::{listen_net, net_end, net_table, parse_bytes, run_net};

/// What goes wrong in a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A flag has a value that is not possible.
    #[error("{flag}: {message}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What to give instead.
        message: String,
    },
    /// A process could not be started, or its directory could not be made.
    #[error("peer {peer} could not be started: {reason}")]
    Start {
        /// Which, from zero.
        peer: usize,
        /// Why.
        reason: String,
    },
    /// A process ended without its figures.
    #[error("peer {peer} ended without its figures; its last words: {words}")]
    Silent {
        /// Which, from zero.
        peer: usize,
        /// What it said last.
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
    /// The configuration made of the flags is refused.
    #[error(transparent)]
    Config(#[from] murmurate_node::config::ConfigError),
}
