//! The command line of `murmurate limit`.

use clap::Args;
use std::path::PathBuf;

/// Changes hold until the daemon ends; its configuration stays as it is.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// The running daemon's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// To all peers together: "10 MB/s", 80mbit, bytes a second, or none
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
    /// To each peer, alike
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate_per_peer: Option<String>,
}
