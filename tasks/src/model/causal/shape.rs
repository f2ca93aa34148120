//! The sizes of a causal language model, as `config.json` of a Hugging Face directory gives them.

use super::rope::Rope;

/// A causal language model by its sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum CausalShape {
    /// Llama.
    Llama(LlamaShape),
    /// GPT-2.
    Gpt2(Gpt2Shape),
}

/// The sizes of a Llama.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaShape {
    /// Tokens that it knows (`vocab_size`).
    pub vocabulary: usize,
    /// Size of the vector for one token (`hidden_size`).
    pub width: usize,
    /// Units of the feed-forward layer (`intermediate_size`).
    pub hidden: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Size of one head; even.
    pub head_width: usize,
    /// Longest sequence it was made for (`max_position_embeddings`).
    pub positions: usize,
    /// Added to mean squares in norms.
    pub eps: f64,
    /// Rotary position embedding.
    pub rope: Rope,
    /// The output uses the transposed table of embeddings.
    pub tied: bool,
}

/// The sizes of a GPT-2.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpt2Shape {
    /// Tokens that it knows (`vocab_size`).
    pub vocabulary: usize,
    /// Size of the vector for one token (`n_embd`); a multiple of `heads`.
    pub width: usize,
    /// Units of the feed-forward layer (`n_inner`).
    pub hidden: usize,
    /// Blocks.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Rows of the table of positions, the longest sequence.
    pub positions: usize,
    /// Added to variances in norms.
    pub eps: f64,
    /// The output uses the transposed table of embeddings.
    pub tied: bool,
}

impl CausalShape {
    /// Its name in the configuration, and `model_type` in `config.json`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Llama(_) => "llama",
            Self::Gpt2(_) => "gpt2",
        }
    }

    /// Tokens that the model knows.
    pub const fn vocabulary(&self) -> usize {
        match self {
            Self::Llama(shape) => shape.vocabulary,
            Self::Gpt2(shape) => shape.vocabulary,
        }
    }

    /// The longest sequence.
    pub const fn positions(&self) -> usize {
        match self {
            Self::Llama(shape) => shape.positions,
            Self::Gpt2(shape) => shape.positions,
        }
    }

    /// Blocks.
    pub const fn layers(&self) -> usize {
        match self {
            Self::Llama(shape) => shape.layers,
            Self::Gpt2(shape) => shape.layers,
        }
    }

    /// The output uses the transposed table of embeddings.
    pub const fn tied(&self) -> bool {
        match self {
            Self::Llama(shape) => shape.tied,
            Self::Gpt2(shape) => shape.tied,
        }
    }

    /// Values of the model, adapters not counted.
    pub fn parameters(&self) -> u64 {
        let count = match self {
            Self::Llama(s) => {
                let (q, kv) = (s.heads * s.head_width, s.kv_heads * s.head_width);
                let attention = 2 * s.width * q + 2 * s.width * kv;
                let block = attention + 3 * s.width * s.hidden + 2 * s.width;
                s.layers * block + s.width + s.vocabulary * s.width
            }
            Self::Gpt2(s) => {
                let attention = 4 * s.width * s.width + 4 * s.width;
                let block = attention + 2 * s.width * s.hidden + s.hidden + 5 * s.width;
                s.layers * block + 2 * s.width + (s.vocabulary + s.positions) * s.width
            }
        };
        let output = match self {
            Self::Llama(s) if !s.tied => s.vocabulary * s.width,
            Self::Gpt2(s) if !s.tied => s.vocabulary * s.width,
            _ => 0,
        };
        (count + output) as u64
    }
}
