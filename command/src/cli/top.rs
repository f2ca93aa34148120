//! Arguments of `murmurate top`.

use clap::Args;
use std::path::PathBuf;

/// The longest pause between two questions, seconds.
pub(crate) const INTERVAL_MAX_S: f64 = 3600.0;

/// The shortest pause between two questions, seconds: each one takes a little of the daemon's time.
pub(crate) const INTERVAL_MIN_S: f64 = 0.1;

/// Shows a daemon and its swarm on the terminal: what the round does or waits for, the peers, loss, accuracy, the
/// time of each round, events.
///
/// Keys: s sorts by the next column, r reverses, / filters, the arrows select a peer, p pauses, ? shows all
/// keys and signs, q quits.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The running daemon's directory, or the address of its page [default: murmurate-state]
    #[arg(value_name = "DIR|URL", conflicts_with = "replay")]
    pub(crate) daemon: Option<String>,
    /// Print one frame as text and end; so does an output that is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print all that is known as one JSON object and end
    #[arg(long)]
    pub(crate) json: bool,
    /// Show a recorded run: the event log of a daemon (events.jsonl, or its directory), and after it those
    /// of others, whose rounds are shown too
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) replay: Vec<PathBuf>,
    /// Seconds between two questions to the daemon
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub(crate) interval: f64,
}
