//! The flags of `murmurate run`.

use super::offered::{self, offered};
use clap::{Args, ValueEnum};
use murmurate_node::faults::Fault;
use murmurate_node::lies::Lie;
use murmurate_node::progress::LogMode;
use murmurate_node::splits::Split;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Configuration file; `murmurate init` writes one. Flags override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The daemon's directory: identity, lock, checkpoint. The same directory means the same peer
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Address of a daemon of the run, as printed by it; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) join: Vec<String>,
    /// Address to listen on; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) listen: Vec<String>,
    /// The name of a run that this daemon founds, or of an open run
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Strategy preset, such as diloco; `murmurate strategies` lists all
    #[arg(long, value_parser = offered(str::parse::<String>, offered::presets), hide_possible_values = true)]
    pub(crate) preset: Option<String>,
    /// Enter a run with the invite in this file, a line that `murmurate invite` printed. The variable
    /// MURMURATE_INVITE does the same, and so does the line itself, which the shell then remembers
    #[arg(long, value_name = "FILE")]
    pub(crate) invite: Option<String>,
    /// Enter a run with its key, as the owner; `murmurate run-key` makes one
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Let everyone in who knows the run's name and an address: for public experiments
    #[arg(long)]
    pub(crate) open: bool,
    /// Seed for everything that is equal on all daemons
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Number of rounds; 0 means until told to stop
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
    /// Number of daemons, including this one, that a fresh run waits for
    #[arg(long, value_name = "COUNT")]
    pub(crate) start_with: Option<u32>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub(crate) init: Option<PathBuf>,
    /// Device that trains: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long, value_parser = offered(str::parse::<String>, offered::devices), hide_possible_values = true)]
    pub(crate) device: Option<String>,
    /// Leave when an evaluation reaches this accuracy; exit with an error if none does
    #[arg(long, value_name = "SHARE")]
    pub(crate) until_accuracy: Option<f64>,
    /// Leave when an evaluation reaches this loss, in nats; exit with an error if none does
    #[arg(long, value_name = "LOSS")]
    pub(crate) until_loss: Option<f64>,
    /// Wait for a training loop in another process instead of training here: PyTorch, JAX, NumPy
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) trainer: Option<TrainerArg>,
    /// Do not look for peers on the local network
    #[arg(long)]
    pub(crate) no_mdns: bool,
    /// Relay for daemons of this run that cannot be dialled
    #[arg(long)]
    pub(crate) relay: bool,
    /// A name that others show beside this daemon's id
    #[arg(long, value_name = "NAME")]
    pub(crate) daemon_name: Option<String>,
    /// Address of the HTTP server with /status and /metrics
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) http: Option<String>,
    /// Allow an --http address that is reachable from other machines
    #[arg(long)]
    pub(crate) http_public: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = LogMode::Auto)]
    pub(crate) log: LogMode,
    /// Record the inputs of the daemon's peer, for `murmurate sim --replay`; the file must not
    /// exist
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print the effective configuration and end
    #[arg(long)]
    pub(crate) show_config: bool,
    /// Inflict a fault on this daemon, for tests: kill@ROUND:PHASE, stop@ROUND
    #[arg(long, hide = true)]
    pub(crate) fault: Vec<Fault>,
    /// Lie to the other daemons, for tests: MODE or MODE:ROUND, as `murmurate local --liar`
    #[arg(long, hide = true, value_name = "MODE")]
    pub(crate) lie: Vec<Lie>,
    /// Be cut off from other daemons for some rounds, for tests: FROM..UNTIL:PEER,PEER
    #[arg(long, hide = true, value_name = "SPLIT")]
    pub(crate) split: Vec<Split>,
    /// End when the process with this id ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// After `--`: start this training loop, attach it, and start it again when it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Where a daemon's trainer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrainerArg {
    /// From a training loop that attaches to the daemon
    Attach,
}
