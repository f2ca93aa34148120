//! Causal language models of Hugging Face directories: GPT-2, and Llama with its relatives.

mod extras;
mod families;
mod gpt2;
mod json;
mod keys;
mod llama;
mod parts;
mod pass;
mod rope;
mod shape;

pub(crate) use extras::{dropout_of, end_of_text, ends_of_text};
pub use gpt2::Gpt2;
pub(crate) use json::read_json;
pub use json::{ModelDirError, read_shape, shape_json};
pub use llama::Llama;
pub use parts::Lora;
pub(crate) use parts::initial;
pub(crate) use pass::{Cache, Output, Row};
pub use rope::{Rope, Stretch};
pub use shape::{Biases, CausalShape, Family, Gemma, LlamaShape, NearLayers};

use crate::Segments;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use parts::Maker;

/// A causal language model of any architecture.
#[derive(Module, Debug)]
pub enum CausalLm {
    /// Llama, and those that differ from it in parts of a block.
    Llama(Llama),
    /// GPT-2.
    Gpt2(Gpt2),
}

impl CausalLm {
    /// All parameters zero. With `lora` only the adapters are trained.
    pub fn zeros(shape: &CausalShape, lora: Option<&Lora>, device: &Device) -> Self {
        let make = Maker {
            lora,
            device,
            norms_from_one: false,
        };
        match &shape.family {
            Family::Llama(own) => Self::Llama(Llama::zeros(shape, own, &make)),
            Family::Gpt2 => Self::Gpt2(Gpt2::zeros(shape, &make)),
        }
    }

    /// Logits `[batch * context, vocabulary]` of the token after each; tokens: `[batch, context]`,
    /// each below the vocabulary.
    ///
    /// # Panics
    /// When sequences are longer than the model's table of positions (GPT-2).
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        let x = self.hidden(&Row::whole(tokens), &mut Segments::whole());
        self.output().logits(&x)
    }

    /// Activations `[batch * context, width]` of which [`CausalLm::output`] makes logits, with a boundary before
    /// every block and before the last norm. A tied model uses its table of embeddings in the first and the
    /// last segment, so it must not be cut.
    pub(crate) fn hidden(&self, row: &Row, segments: &mut Segments) -> Tensor<2> {
        self.through(row, None, segments)
    }

    /// Activations `[new, width]`, as [`CausalLm::hidden`], of tokens `[1, new]` that follow those in the cache and are
    /// added to it.
    pub(crate) fn follow(&self, tokens: Tensor<2, Int>, cache: &mut Cache) -> Tensor<2> {
        self.through(&Row::whole(tokens), Some(cache), &mut Segments::whole())
    }

    fn through(&self, row: &Row, cache: Option<&mut Cache>, segments: &mut Segments) -> Tensor<2> {
        match self {
            Self::Llama(model) => model.hidden(row, cache, segments),
            Self::Gpt2(model) => model.hidden(row, cache, segments),
        }
    }

    /// The last layer.
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Llama(model) => model.output(),
            Self::Gpt2(model) => model.output(),
        }
    }
}
