//! Arguments of `murmurate sim`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    pub(crate) what: Option<SimCommand>,
    /// Scenario file
    #[arg(value_name = "FILE.toml", required_unless_present_any = ["seeds", "replay"])]
    pub(crate) file: Option<PathBuf>,
    /// Repeat the record of `murmurate run --record`, and compare the outputs bit for bit
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "seed", "seeds"])]
    pub(crate) replay: Option<PathBuf>,
    /// Seed, instead of the scenario's; with --seeds, the first one
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Run this many random scenarios, until one violates an invariant
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
    #[command(after_help = super::examples::SIM_SURVEY)]
    Survey(SurveyArgs),
    /// Compare presets on several tasks and networks
    #[command(after_help = super::examples::SIM_COMPARE)]
    Compare(CompareArgs),
    /// Compare strategies on a text at equal tokens, equal bytes and equal seconds
    #[command(after_help = super::examples::SIM_LANGUAGE)]
    Language(LanguageArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LanguageArgs {
    /// File that describes the trial, such as sim/scenarios/language/presets.toml
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Text file, or folder of text: replaces `task.data`
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,
    /// File that keeps the result of each run, so that the same command goes on where it was stopped
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) results: Option<PathBuf>,
    /// Run only these entrants
    #[arg(long, value_delimiter = ',')]
    pub(crate) entrants: Vec<String>,
    /// Run only these sizes of the swarm
    #[arg(long, value_delimiter = ',')]
    pub(crate) peers: Vec<usize>,
    /// Run only these seeds
    #[arg(long, value_delimiter = ',')]
    pub(crate) seeds: Vec<u64>,
    /// Run only distributions of the data whose name contains this text
    #[arg(long, value_name = "PART")]
    pub(crate) split: Option<String>,
    /// Write the measured loss penalties as TOML, in the form that the planner keeps
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) penalties: Option<PathBuf>,
    /// Print the tables in Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// File that describes the comparison, such as sim/scenarios/comparison/comparison.toml
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Write a page with curves and tables
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
    /// Run only these presets
    #[arg(long, value_delimiter = ',')]
    pub(crate) presets: Vec<String>,
    /// Run only these sizes of the swarm
    #[arg(long, value_delimiter = ',')]
    pub(crate) peers: Vec<usize>,
    /// Run only these seeds
    #[arg(long, value_delimiter = ',')]
    pub(crate) seeds: Vec<u64>,
    /// Run only tasks whose name contains this text
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SurveyArgs {
    /// File with measurements, in the form of survey/data/10gbe.csv
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) measured: PathBuf,
    /// File with constants of the model [default: survey/data/constants.toml]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) constants: Option<PathBuf>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
