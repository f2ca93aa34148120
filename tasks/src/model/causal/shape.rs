//! The sizes of a causal language model, as `config.json` of a Hugging Face directory gives them.

use super::rope::Rope;

/// A causal language model by its sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct CausalShape {
    /// The architecture, with the sizes that only its models have.
    pub family: Family,
    /// Tokens that it knows (`vocab_size`).
    pub vocabulary: usize,
    /// Size of the vector for one token (`hidden_size`, `n_embd`); a multiple of `heads` in a GPT-2.
    pub width: usize,
    /// Units of the feed-forward layer (`intermediate_size`, `n_inner`).
    pub hidden: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Longest sequence (`max_position_embeddings`, `n_positions`). A GPT-2 has a table of positions with as
    /// many rows.
    pub positions: usize,
    /// Added to mean squares or variances in norms.
    pub eps: f64,
    /// The output uses the transposed table of embeddings.
    pub tied: bool,
}

/// Architectures, with the sizes that only their models have.
#[derive(Clone, Debug, PartialEq)]
pub enum Family {
    /// Llama.
    Llama(LlamaHeads),
    /// GPT-2.
    Gpt2,
}

/// The attention of a Llama.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaHeads {
    /// Heads of keys and values; divides the heads of the queries.
    pub kv_heads: usize,
    /// Size of one head; even.
    pub head_width: usize,
    /// Rotary position embedding.
    pub rope: Rope,
}

impl CausalShape {
    /// Its name in the configuration, and `model_type` in `config.json`.
    pub const fn name(&self) -> &'static str {
        match self.family {
            Family::Llama(_) => "llama",
            Family::Gpt2 => "gpt2",
        }
    }
}
