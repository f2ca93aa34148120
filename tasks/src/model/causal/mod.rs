//! Causal language models of Hugging Face directories: Llama and GPT-2.

mod extras;
mod gpt2;
mod json;
mod llama;
mod parts;
mod rope;
mod shape;

pub(crate) use extras::{dropout_of, end_of_text};
pub use gpt2::Gpt2;
pub(crate) use json::read_json;
pub use json::{ModelDirError, read_shape, shape_json};
pub use llama::Llama;
pub use parts::Lora;
pub(crate) use parts::initial;
pub use rope::{Rope, Stretch};
pub use shape::{CausalShape, Family, LlamaHeads};

use crate::Segments;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use parts::Maker;

/// A causal language model of any architecture.
#[derive(Module, Debug)]
pub enum CausalLm {
    /// Llama.
    Llama(Llama),
    /// GPT-2.
    Gpt2(Gpt2),
}

impl CausalLm {
    /// All parameters zero. With `lora` only the adapters are trained.
    pub fn zeros(shape: &CausalShape, lora: Option<&Lora>, device: &Device) -> Self {
        let make = Maker { lora, device };
        match &shape.family {
            Family::Llama(heads) => Self::Llama(Llama::zeros(shape, heads, &make)),
            Family::Gpt2 => Self::Gpt2(Gpt2::zeros(shape, &make)),
        }
    }

    /// Logits `[batch * context, vocabulary]` of the token after each; tokens: `[batch, context]`,
    /// each below the vocabulary.
    ///
    /// # Panics
    /// When sequences are longer than the model's table of positions (GPT-2).
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        self.segmented(tokens, &mut Segments::whole())
    }

    /// The same, with a boundary before every block and before the output. A tied model uses its
    /// table of embeddings in the first and the last segment, so it must not be cut.
    pub fn segmented(&self, tokens: Tensor<2, Int>, segments: &mut Segments) -> Tensor<2> {
        match self {
            Self::Llama(model) => model.segmented(tokens, segments),
            Self::Gpt2(model) => model.segmented(tokens, segments),
        }
    }
}
