//! The flags of the commands on a trained model: `murmurate export` and `murmurate eval`.

use super::membership::USUAL_DIR;
use super::offered::{self, offered};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    #[arg(value_name = "DIR", default_value = USUAL_DIR)]
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

/// The model that another one is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgainstArg {
    /// Trained now on this daemon's data, without the swarm
    Local,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Model, as written by `murmurate export`: a file, or the folder of a language model
    #[arg(long, value_name = "PATH", required_unless_present = "dir")]
    pub(crate) model: Option<PathBuf>,
    /// A daemon's directory: the model of its last checkpoint, with the tensors that stay with it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["model", "config"])]
    pub(crate) dir: Option<PathBuf>,
    /// Compare with a model that this daemon's data alone makes in as many inner steps
    #[arg(long, value_enum, requires = "dir")]
    pub(crate) against: Option<AgainstArg>,
    /// Ask questions instead: JSON Lines with query, choices and gold
    #[arg(long, value_name = "FILE", requires = "model", conflicts_with_all = ["data", "config"])]
    pub(crate) choices: Option<PathBuf>,
    /// Held-out data: a path, or `bundled` [default: as in the configuration]
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Configuration that describes the model [default: the one inside the model file]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Device that computes: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long, value_parser = offered(str::parse::<String>, offered::devices), hide_possible_values = true)]
    pub(crate) device: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Folder of a language model, as `murmurate export` or `transformers` writes it
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// The text to continue; with --chat the message to answer
    #[arg(long, value_name = "TEXT", required_unless_present = "chat")]
    pub(crate) prompt: Option<String>,
    /// Answer messages by the model's chat template; without --prompt those that are typed, one a line
    #[arg(long)]
    pub(crate) chat: bool,
    /// The system message in front of the conversation
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub(crate) system: Option<String>,
    /// Tokens to add at most
    #[arg(long, default_value_t = 100)]
    pub(crate) max_tokens: usize,
    /// Divides the logits: below 1 is more likely, above 1 more varied; 0 takes the most likely token
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f64,
    /// Draw from this number of most likely tokens; 0 draws from all
    #[arg(long, default_value_t = 0)]
    pub(crate) top_k: usize,
    /// Draw from the most likely tokens whose probabilities add up to this
    #[arg(long, default_value_t = 1.0)]
    pub(crate) top_p: f64,
    /// Text at which generation ends; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
    /// Print one JSON object with the text instead of the text as it comes
    #[arg(long, requires = "prompt")]
    pub(crate) json: bool,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where to compute: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long, value_parser = offered(str::parse::<String>, offered::devices), hide_possible_values = true)]
    pub(crate) device: Option<String>,
}
