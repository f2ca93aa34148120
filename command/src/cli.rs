//! The command line as clap structs.

mod bench;
mod generate;
mod limit;
mod membership;
mod sim;
mod why;

pub(crate) use bench::{
    Bench, BenchArgs, BenchCodecsArgs, BenchExchangeArgs, BenchJoinArgs, BenchNetArgs,
    BenchPeerArgs,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use generate::GenerateArgs;
pub(crate) use limit::LimitArgs;
pub(crate) use membership::{
    AdmitArgs, IdArgs, InviteArgs, MembersArgs, OfficeArgs, RevokeArgs, RunKeyArgs,
};
use murmurate_net::emulate::{LinkSpec, NatKind};
use murmurate_node::faults::Fault;
use murmurate_node::lies::Lie;
use murmurate_node::local::{
    HealAt, IslandsArg, KillAt, KillEvery, LateAt, LiarAt, PartitionAt, ShardsArg, StopAt,
};
use murmurate_node::progress::LogMode;
use murmurate_node::splits::Split;
pub(crate) use sim::{CompareArgs, SimArgs, SimCommand, SurveyArgs};
use std::ffi::OsString;
use std::path::PathBuf;
pub(crate) use why::{DEFAULT_DIR, LogArgs, WhyArgs};

/// Train one model on many machines without a coordinator.
#[derive(Debug, Parser)]
#[command(name = "murmurate", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one daemon: train, and exchange with others
    Run(RunArgs),
    /// Run several daemons on this machine and compare what they learned
    Local(LocalArgs),
    /// Write a commented configuration
    Init(InitArgs),
    /// Run a scenario in virtual time
    Sim(SimArgs),
    /// Predict the cost of each preset on a cluster
    Plan(PlanArgs),
    /// List all methods, or show one
    Strategies(StrategiesArgs),
    /// Write a daemon's model as safetensors
    Export(ExportArgs),
    /// Continue a text with a language model
    Generate(GenerateArgs),
    /// Measure a model on held-out data
    Eval(EvalArgs),
    /// Show or change a running daemon's limits on bytes sent per second
    Limit(LimitArgs),
    /// Ask a running daemon why its round does not end, or is slow, or left it out
    Why(WhyArgs),
    /// Print the event logs of daemons, joined by cause
    Log(LogArgs),
    /// Make the key of a new run
    RunKey(RunKeyArgs),
    /// Print a line that lets another machine into a run
    Invite(InviteArgs),
    /// Print a line that lets one certain machine into a run
    Admit(AdmitArgs),
    /// Throw a machine out of a run, or make an invite void
    Revoke(RevokeArgs),
    /// List the members of a run
    Members(MembersArgs),
    /// Print the id of a daemon
    Id(IdArgs),
    /// Measure the daemon's parts on this machine
    Bench(BenchArgs),
}

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
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Enter a run with this invite, a line that `murmurate invite` printed, or a file with it
    #[arg(long, value_name = "LINE")]
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
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Leave when an evaluation has this accuracy; exit with an error if none does
    #[arg(long, value_name = "SHARE")]
    pub(crate) until_accuracy: Option<f64>,
    /// Leave when an evaluation has this loss, in nats; exit with an error if none does
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

/// Daemons are numbered from 0; daemon 0 is the one that the others join first.
#[derive(Debug, Args)]
pub(crate) struct LocalArgs {
    /// Number of daemons
    #[arg(long, default_value_t = 4)]
    pub(crate) nodes: usize,
    /// Number of daemons and of trainers in each: 2x4 is two peers that are islands of four ranks
    #[arg(long, value_name = "PEERSxRANKS", conflicts_with = "nodes")]
    pub(crate) islands: Option<IslandsArg>,
    /// Strategy preset [default: diloco for images, local-adam for text]; `murmurate strategies`
    /// lists all
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Configuration for all daemons, as for `murmurate run`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// End after this many rounds [default: those with 6000 inner steps]
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
    /// End when every daemon has reached this accuracy; exit with an error if one does not
    /// [default: 0.96 for the bundled images, but none with --rounds or preset none]
    #[arg(long, value_name = "SHARE")]
    pub(crate) until_accuracy: Option<f64>,
    /// End when every daemon has reached this loss, in nats; exit with an error if one does not
    #[arg(long, value_name = "LOSS")]
    pub(crate) until_loss: Option<f64>,
    /// Division of the data: dealt, iid, by-label, dirichlet:ALPHA [default: by-label for images, but iid
    /// with --kill or --stop, because a lost daemon takes its classes with it]
    #[arg(long)]
    pub(crate) shards: Option<ShardsArg>,
    /// Seed of model, data division and order
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub(crate) init: Option<PathBuf>,
    /// Device that trains: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Parent of the daemons' directories [default: a temporary one, removed on success]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Open the page of the swarm in a browser
    #[arg(long)]
    pub(crate) open_browser: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Kill daemon N (SIGKILL) in round R: N@round:R[:train|exchange|apply]
    #[arg(long, value_name = "N@round:R")]
    pub(crate) kill: Vec<KillAt>,
    /// Kill a random daemon (SIGKILL) at this interval and restart it after 2 s, until a daemon has
    /// completed all rounds: 5s, 500ms, 1min; --seed determines the choice
    #[arg(long, value_name = "TIME")]
    pub(crate) kill_every: Option<KillEvery>,
    /// Start daemon N when the others have reached round R
    #[arg(long, value_name = "N@round:R")]
    pub(crate) late: Vec<LateAt>,
    /// Let daemon N break the protocol, from round ROUND if one is given: `N@MODE[:ROUND]` with weight,
    /// poison, sign-flip, owner-lie, equivocate, propose, decided, behind, state, slot, withhold,
    /// silent, flood or random; may be given several times. The results are those of the honest
    /// daemons
    #[arg(long, value_name = "N@MODE")]
    pub(crate) liar: Vec<LiarAt>,
    /// Split the swarm in round R: cut all links between the sides. Each side goes on, and after --heal
    /// they are merged by weight
    #[arg(long, value_name = "0,1|2,3@round:R")]
    pub(crate) partition: Option<PartitionAt>,
    /// Let the sides of --partition reach each other again when they are in round S
    #[arg(long, value_name = "@round:S")]
    pub(crate) heal: Option<HealAt>,
    /// Record the inputs of daemon N's peer in DIR/N.rec, for `murmurate sim --replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Stop daemon N (SIGSTOP) in round R
    #[arg(long, value_name = "N@round:R")]
    pub(crate) stop: Vec<StopAt>,
    /// Put every daemon behind an emulated link: RATE/RTT/LOSS, such as 50mbit/100ms/1%, then keys
    /// such as /queue=100ms,jitter=5ms,burst=8,up=20mbit. The path between two daemons consists of
    /// their two links
    #[arg(long, value_name = "RATE/RTT/LOSS")]
    pub(crate) link: Option<LinkSpec>,
    /// Put every daemon except the first behind an emulated router: none, full-cone,
    /// port-restricted, symmetric
    #[arg(long, value_name = "KIND")]
    pub(crate) nat: Option<NatKind>,
    /// Let a peer without a certificate attack the daemons while they train
    #[arg(long)]
    pub(crate) stranger: bool,
    /// Afterwards train the same daemons with preset none for this many seconds, to compute
    /// utilization; 0 skips this
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub(crate) baseline: f64,
    /// After `--`: the training loop of every daemon, which attaches to it
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    pub(crate) to: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Number of parameters of the model
    #[arg(long, value_name = "COUNT")]
    pub(crate) params: f64,
    /// Milliseconds of one inner step on one machine
    #[arg(long, value_name = "MS")]
    pub(crate) step_ms: f64,
    /// The link of each machine, UP[/DOWN]/LATENCY: 100mbit/40ms, 20mbit/100mbit/60ms, 10gbit/0.1ms
    #[arg(long)]
    pub(crate) link: String,
    /// Number of machines
    #[arg(long)]
    pub(crate) peers: usize,
    /// The utilization that a preset needs to be recommended
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(crate) target: f64,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StrategiesArgs {
    #[command(subcommand)]
    pub(crate) what: Option<StrategiesCommand>,
    /// Print JSON on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StrategiesCommand {
    /// Show a method: keys with ranges and defaults, equation, source and state; for a preset, its
    /// configuration
    Show {
        /// Name of a preset, exchange, topology, codec, optimizer, rule or correction
        name: String,
    },
}

/// The store of a checkpoint that is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreArg {
    /// The last parameters that the peers agreed on
    Anchor,
    /// The parameters that this daemon has trained since then, if they are stored
    Parameters,
    /// The agreed parameters with the lowest loss (daemon.keep_best)
    Best,
    /// The moving average of the agreed parameters (daemon.ema)
    Ema,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The daemon's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The file to write; of kind = "causal-lm" the folder
    #[arg(long, value_name = "PATH")]
    pub(crate) to: PathBuf,
    /// Parameters to write
    #[arg(long, value_enum, default_value_t = StoreArg::Anchor)]
    pub(crate) store: StoreArg,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Model, as written by `murmurate export`: a file, or the folder of a language model
    #[arg(long, value_name = "PATH")]
    pub(crate) model: PathBuf,
    /// Held-out data: a path, or `bundled` [default: as in the configuration]
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Configuration that describes the model [default: the one inside the model file]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Device that computes: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
