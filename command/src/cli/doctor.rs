//! The flags of `murmurate doctor` and `murmurate explain`.

use super::offered::{self, offered};
use clap::Args;
use std::path::PathBuf;

/// Checks what a daemon needs before it starts, or while it runs: configuration, directory, membership,
/// data, memory, disk, ports, and whether the daemons to join answer.
///
/// Nothing is changed. The exit code is 1 if a check failed.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The daemon's directory [default: that of the configuration]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Configuration file of the daemon [default: node.toml in DIR, or that of DIR's last checkpoint]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of a daemon to join; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) join: Vec<String>,
    /// File with the invite with which the daemon is to enter, or the line itself
    #[arg(long, value_name = "FILE")]
    pub(crate) invite: Option<String>,
    /// The run is open, as for `murmurate run --open`
    #[arg(long)]
    pub(crate) open: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write all of this, the configuration, the status and the end of the event log into a file for a
    /// report of a problem; keys, tokens and invites are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A code such as M021 [default: list all]
    #[arg(value_name = "CODE", value_parser = offered(str::parse::<String>, offered::all_codes), hide_possible_values = true)]
    pub(crate) code: Option<String>,
}
