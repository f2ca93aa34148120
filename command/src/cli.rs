//! The command line as clap structs.

mod bench;
mod control;
#[cfg(test)]
mod document;
mod examples;
mod inspect;
mod membership;
mod model;
mod offered;
#[cfg(test)]
mod printed;
mod run;
mod sim;

pub(crate) use bench::{
    Bench, BenchArgs, BenchCodecsArgs, BenchExchangeArgs, BenchJoinArgs, BenchNetArgs,
    BenchPeerArgs,
};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
pub(crate) use control::ControlArgs;
pub(crate) use inspect::{
    DoctorArgs, ExplainArgs, INTERVAL_MAX_S, INTERVAL_MIN_S, LimitArgs, LogArgs, TopArgs, WhyArgs,
};
pub(crate) use membership::{
    AdmitArgs, IdArgs, InviteArgs, MembersArgs, OfficeArgs, RevokeArgs, RunKeyArgs, USUAL_DIR,
};
pub(crate) use model::{AgainstArg, EvalArgs, ExportArgs, GenerateArgs, StoreArg};
use murmurate_node::local::LocalOptions;
use offered::offered;
pub(crate) use run::RunArgs;
pub(crate) use sim::{CompareArgs, LanguageArgs, SimArgs, SimCommand, SurveyArgs};
use std::path::PathBuf;

/// Train one model on many machines without a coordinator.
#[derive(Debug, Parser)]
#[command(
    name = "murmurate",
    version,
    arg_required_else_help = true,
    after_help = crate::exit::TABLE
)]
pub(crate) struct Cli {
    /// Print only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one daemon: train, and exchange with others
    #[command(after_help = examples::RUN, mut_args(offered::offer))]
    Run(RunArgs),
    /// Run several daemons on this machine and compare what they learned
    #[command(after_help = examples::LOCAL, mut_args(offered::offer))]
    Local(LocalOptions),
    /// Write a commented configuration
    #[command(after_help = examples::INIT)]
    Init(InitArgs),
    /// Run a scenario in virtual time
    #[command(after_help = examples::SIM)]
    Sim(SimArgs),
    /// Predict the cost of each preset on a cluster
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// List all methods, or show one
    #[command(after_help = examples::STRATEGIES)]
    Strategies(StrategiesArgs),
    /// Write a daemon's model as safetensors
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Continue a text with a language model
    #[command(after_help = examples::GENERATE)]
    Generate(GenerateArgs),
    /// Measure a model on held-out data
    #[command(after_help = examples::EVAL)]
    Eval(EvalArgs),
    /// Show or change a running daemon's limits on bytes sent per second
    #[command(after_help = examples::LIMIT)]
    Limit(LimitArgs),
    /// Show a daemon and its swarm on the terminal
    #[command(after_help = examples::TOP)]
    Top(TopArgs),
    /// Ask a running daemon why its round does not end, is slow, or left its training out
    #[command(after_help = examples::WHY)]
    Why(WhyArgs),
    /// Print the event logs of daemons, joined by cause
    #[command(after_help = examples::LOG)]
    Log(LogArgs),
    /// Make the key of a new run
    #[command(after_help = examples::RUN_KEY)]
    RunKey(RunKeyArgs),
    /// Print a line that lets another machine into a run
    #[command(after_help = examples::INVITE)]
    Invite(InviteArgs),
    /// Print a line that lets one certain machine into a run
    #[command(after_help = examples::ADMIT)]
    Admit(AdmitArgs),
    /// Throw a machine out of a run, or make an invite void
    #[command(after_help = examples::REVOKE)]
    Revoke(RevokeArgs),
    /// Pause a run, or change it while it trains: for its owner
    #[command(after_help = examples::CONTROL)]
    Control(ControlArgs),
    /// List the members of a run
    #[command(after_help = examples::MEMBERS)]
    Members(MembersArgs),
    /// Print the id of a daemon
    #[command(after_help = examples::ID)]
    Id(IdArgs),
    /// Measure the daemon's parts on this machine
    #[command(after_help = examples::BENCH)]
    Bench(BenchArgs),
    /// Check a daemon and its machine, and say what mends each problem
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Explain a code that doctor printed
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Print a script that completes the command in a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each subcommand
    #[command(after_help = examples::MAN)]
    Man(ManArgs),
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
    /// What is trained: a language model gets presets made for it, with the loss that they cost
    #[arg(long, value_name = "KIND")]
    pub(crate) task: Option<PlannedTask>,
    /// The utilization that a preset needs to be recommended
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(crate) target: f64,
    /// Say what this epsilon costs: the noise that a promise of privacy for each peer's data needs
    #[arg(long, value_name = "EPSILON")]
    pub(crate) privacy: Option<f64>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Kinds of `[task]`, as far as the planner tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PlannedTask {
    /// A Llama or GPT-2
    CausalLm,
    /// A transformer on the bytes of a text
    LanguageModel,
    /// Anything else
    Other,
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
    #[command(after_help = examples::STRATEGIES_SHOW)]
    Show {
        /// Name of a preset, exchange, topology, codec, optimizer, rule or correction
        #[arg(value_parser = offered(str::parse::<String>, offered::methods), hide_possible_values = true)]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for the command and for each subcommand into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
