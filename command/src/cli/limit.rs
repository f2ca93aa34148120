//! The command line of `murmurate limit`.

use clap::Args;
use std::path::PathBuf;

/// Changes last until the daemon ends; its configuration is not changed.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// The running daemon's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// For all peers together: "10 MB/s", 80mbit, bytes per second, or none
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
    /// For each peer
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate_per_peer: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
