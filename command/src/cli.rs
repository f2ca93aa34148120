//! The command line: clap structs and nothing else.

mod bench;
mod generate;
mod limit;

pub(crate) use bench::{Bench, BenchArgs, BenchExchangeArgs, BenchNetArgs, BenchPeerArgs};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use generate::GenerateArgs;
pub(crate) use limit::LimitArgs;
use murmurate_net::emulate::{LinkSpec, NatKind};
use murmurate_node::faults::Fault;
use murmurate_node::local::{KillAt, KillEvery, LateAt, ShardsArg, StopAt};
use murmurate_node::progress::LogMode;
use std::path::PathBuf;

/// Train one model on many machines without a coordinator.
#[derive(Debug, Parser)]
#[command(name = "murmurate", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one daemon: train, and exchange with the others
    Run(RunArgs),
    /// Run several daemons on this machine and compare what they learnt
    Local(LocalArgs),
    /// Write a commented configuration
    Init(InitArgs),
    /// Run a scenario in virtual time
    Sim(SimArgs),
    /// Predict what each preset would make of a cluster
    Plan(PlanArgs),
    /// List every method of the grid, or show one
    Strategies(StrategiesArgs),
    /// Write a daemon's model as safetensors
    Export(ExportArgs),
    /// Continue a text with a language model
    Generate(GenerateArgs),
    /// Measure a model on held data
    Eval(EvalArgs),
    /// Show or change what a running daemon may send a second
    Limit(LimitArgs),
    /// Measure the daemon's own parts on this machine
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Configuration; `murmurate init` writes one. Flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The daemon's directory: identity, lock, checkpoint. The same directory is the same peer
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Address of a daemon of the run, as it prints it; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) join: Vec<String>,
    /// Where to listen; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) listen: Vec<String>,
    /// The run's name; daemons of one name train one model
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Point of the grid, such as diloco; `murmurate strategies` lists all
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Seed of everything that is equal on all daemons
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Rounds in all; 0 goes on until told to stop
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
    /// Daemons, this one included, that a fresh run waits for
    #[arg(long, value_name = "COUNT")]
    pub(crate) start_with: Option<u32>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub(crate) init: Option<PathBuf>,
    /// Where to train: flex (CPU), wgpu, cuda, cuda:N
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Do not look for others on the local network
    #[arg(long)]
    pub(crate) no_mdns: bool,
    /// Relay for daemons of this run that cannot be dialled
    #[arg(long)]
    pub(crate) relay: bool,
    /// Address of /status and /metrics
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) http: Option<String>,
    /// Allow an --http address that can be reached from outside
    #[arg(long)]
    pub(crate) http_public: bool,
    /// How to tell what happens
    #[arg(long, value_enum, default_value_t = LogMode::Auto)]
    pub(crate) log: LogMode,
    /// Record what goes into the daemon's peer, for `murmurate sim --replay`; the file must not
    /// exist
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print the effective configuration and end
    #[arg(long)]
    pub(crate) show_config: bool,
    /// Do yourself harm: kill@ROUND:PHASE, stop@ROUND
    #[arg(long, hide = true)]
    pub(crate) fault: Vec<Fault>,
    /// End with this process
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) parent: Option<u32>,
}

/// Daemons are numbered from 0; daemon 0 is the one that the others join first.
#[derive(Debug, Args)]
pub(crate) struct LocalArgs {
    /// How many daemons
    #[arg(long, default_value_t = 4)]
    pub(crate) nodes: usize,
    /// Point of the grid [default: diloco]; `murmurate strategies` lists all
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// What all daemons have in common, as for `murmurate run`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// End after this many rounds [default: as many as make 6000 inner steps]
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
    /// End when every daemon reaches this accuracy; not reaching it is an error
    /// [default: 0.96, but none with --rounds or preset none]
    #[arg(long, value_name = "SHARE")]
    pub(crate) until_accuracy: Option<f64>,
    /// How the data is split: iid, by-label, dirichlet:ALPHA [default: by-label for images, but iid
    /// with --kill or --stop, which take a daemon's classes away]
    #[arg(long)]
    pub(crate) shards: Option<ShardsArg>,
    /// Seed of model, data split and order
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub(crate) init: Option<PathBuf>,
    /// Where to train: flex (CPU), wgpu, cuda, cuda:N
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Directory of the daemons' directories [default: a fresh one, removed at success]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Kill daemon N (SIGKILL) in round R: N@round:R[:train|exchange|apply]
    #[arg(long, value_name = "N@round:R")]
    pub(crate) kill: Vec<KillAt>,
    /// Kill a daemon drawn at random (SIGKILL) so often, and start it again 2 s later, until one
    /// has done all rounds: 5s, 500ms, 1min; --seed chooses whom
    #[arg(long, value_name = "TIME")]
    pub(crate) kill_every: Option<KillEvery>,
    /// Start daemon N when the others reach round R
    #[arg(long, value_name = "N@round:R")]
    pub(crate) late: Vec<LateAt>,
    /// Record what goes into daemon N's peer in DIR/N.rec, for `murmurate sim --replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Stop daemon N (SIGSTOP) in round R
    #[arg(long, value_name = "N@round:R")]
    pub(crate) stop: Vec<StopAt>,
    /// Put every daemon behind an emulated link: RATE/RTT/LOSS, such as 50mbit/100ms/1%, then keys
    /// such as /queue=100ms,jitter=5ms,burst=8,up=20mbit. Two such links make up the path between
    /// two daemons
    #[arg(long, value_name = "RATE/RTT/LOSS")]
    pub(crate) link: Option<LinkSpec>,
    /// Put every daemon but the first behind an emulated router: none, full-cone, port-restricted,
    /// symmetric
    #[arg(long, value_name = "KIND")]
    pub(crate) nat: Option<NatKind>,
    /// Afterwards train the same daemons with preset none for so long, to know what utilization is
    /// a share of; 0 leaves it out
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub(crate) baseline: f64,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    pub(crate) to: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    pub(crate) what: Option<SimCommand>,
    /// The scenario
    #[arg(value_name = "FILE.toml", required_unless_present_any = ["seeds", "replay"])]
    pub(crate) file: Option<PathBuf>,
    /// Repeat what `murmurate run --record` recorded, and compare the outputs to the bit
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "seed", "seeds"])]
    pub(crate) replay: Option<PathBuf>,
    /// Instead of the scenario's seed; with --seeds, the first one
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Instead of a file: this many random scenarios, until one breaks an invariant
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["file", "trace", "json"])]
    pub(crate) seeds: Option<u64>,
    /// Write a JSON line for every input and output of every peer
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Predict a table of measured training speeds from its BSP-A2A rows alone
    Survey(SurveyArgs),
    /// Run presets beside each other on several tasks and networks
    Compare(CompareArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What is compared on what, as sim/scenarios/comparison/comparison.toml
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Write a page with curves and tables
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
    /// Only these presets
    #[arg(long, value_delimiter = ',')]
    pub(crate) presets: Vec<String>,
    /// Only these sizes of the swarm
    #[arg(long, value_delimiter = ',')]
    pub(crate) peers: Vec<usize>,
    /// Only these seeds
    #[arg(long, value_delimiter = ',')]
    pub(crate) seeds: Vec<u64>,
    /// Only tasks whose name contains this
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SurveyArgs {
    /// Measurements, in the form of survey/data/10gbe.csv
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) measured: PathBuf,
    /// Other constants of the model [default: those of survey/data/constants.toml]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) constants: Option<PathBuf>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Parameters of the model
    #[arg(long, value_name = "COUNT")]
    pub(crate) params: f64,
    /// Milliseconds of one inner step on one machine
    #[arg(long, value_name = "MS")]
    pub(crate) step_ms: f64,
    /// A machine's link, UP[/DOWN]/LATENCY: 100mbit/40ms, 20mbit/100mbit/60ms, 10gbit/0.1ms
    #[arg(long)]
    pub(crate) link: String,
    /// Machines
    #[arg(long)]
    pub(crate) peers: usize,
    /// The utilization that makes a preset worth advising
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
    /// Keys with ranges and defaults, equation, source and state of a method; of a preset, its
    /// configuration
    Show {
        /// Of a preset, exchange, topology, codec, optimizer, rule or correction
        name: String,
    },
}

/// What of a checkpoint is the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreArg {
    /// What the peers agreed on last
    Anchor,
    /// What this daemon has trained since then, if it is kept
    Parameters,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The daemon's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The file to write; of kind = "causal-lm" the folder
    #[arg(long, value_name = "PATH")]
    pub(crate) to: PathBuf,
    /// Which parameters
    #[arg(long, value_enum, default_value_t = StoreArg::Anchor)]
    pub(crate) store: StoreArg,
    /// Replace what is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The model, as `murmurate export` writes it: a file, or the folder of a language model
    #[arg(long, value_name = "PATH")]
    pub(crate) model: PathBuf,
    /// Held data: a path, or `bundled` [default: as in the configuration]
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Configuration that describes the model [default: the one inside the model file]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to compute: flex (CPU), wgpu, cuda, cuda:N
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
