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
    /// Llama, and those that differ from it in parts of a block.
    Llama(Box<LlamaShape>),
    /// GPT-2.
    Gpt2,
}

/// What the blocks of a Llama, Mistral, Qwen or Gemma are.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaShape {
    /// Heads of keys and values; divides the heads of the queries.
    pub kv_heads: usize,
    /// Size of one head; even.
    pub head_width: usize,
    /// Rotary position embedding.
    pub rope: Rope,
    /// Which projections have a bias.
    pub biases: Biases,
    /// Queries and keys are normed head by head (Qwen3, Gemma 3).
    pub head_norms: bool,
    /// Layers that see only the nearest positions; none if all see everything.
    pub near: Option<NearLayers>,
    /// Only of a Gemma.
    pub gemma: Option<Gemma>,
}

/// Projections with a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Biases {
    /// Those of queries, keys and values.
    pub inputs: bool,
    /// That of the mixed values.
    pub output: bool,
    /// The three of the feed-forward layer.
    pub feed: bool,
}

/// Layers with a sliding window.
///
/// **Source:** Jiang et al., Mistral 7B, 2023, section 2.
#[derive(Clone, Debug, PartialEq)]
pub struct NearLayers {
    /// Positions that each one sees, itself included.
    pub window: usize,
    /// For each layer, whether it has the window.
    pub layers: Vec<bool>,
    /// Their rotary embedding, if they have one of their own (Gemma 3).
    pub rope: Option<Rope>,
}

/// What Gemma 2 and 3 do otherwise: norms before and after each half of a block whose factor is `1 + weight`,
/// embeddings times `sqrt(width)`, and GELU in the gate.
///
/// **Source:** Gemma 2: Improving open language models at a practical size, 2024, section 2; Gemma 3 technical
/// report, 2025, section 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemma {
    /// Scores are divided by the root of this (`query_pre_attn_scalar`).
    pub query_scalar: f64,
    /// `cap tanh(x / cap)` of scores (`attn_logit_softcapping`).
    pub score_cap: Option<f64>,
    /// The same of logits (`final_logit_softcapping`).
    pub logit_cap: Option<f64>,
}
