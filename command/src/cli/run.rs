//! The flags of `murmurate run`.

use clap::Args;
use murmurate_node::config::Overrides;
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
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Enter a run with the invite in this file, a line that `murmurate invite` printed. The variable
    /// MURMURATE_INVITE does the same, and so does the line itself, which the shell then remembers
    // The help lists it before --key, which is one of the flags that override the configuration and does
    // the same for the owner.
    #[arg(long, value_name = "FILE", display_order = 6)]
    pub(crate) invite: Option<String>,
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
