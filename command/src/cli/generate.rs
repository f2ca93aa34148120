//! The flags of `murmurate generate`.

use super::offered::{self, offered};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Folder of a language model, as `murmurate export` or `transformers` writes it
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// The text to continue
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: String,
    /// Tokens to add at most
    #[arg(long, default_value_t = 100)]
    pub(crate) max_tokens: usize,
    /// Divides the logits: below 1 is more likely, above 1 more varied; 0 takes the most likely token
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f64,
    /// Draw from this number of most likely tokens; 0 draws from all
    #[arg(long, default_value_t = 0)]
    pub(crate) top_k: usize,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where to compute: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long, value_parser = offered(str::parse::<String>, offered::devices), hide_possible_values = true)]
    pub(crate) device: Option<String>,
}
