//! The built-in models. Tensor names and shapes are those of their fields: docs/model-format.md.

mod causal;
mod cnn;
mod layers;
mod perceptron;
mod resnet;
mod transformer;

pub use causal::{
    Biases, CausalLm, CausalShape, Family, Gemma, Gpt2, Llama, LlamaShape, Lora, ModelDirError,
    NearLayers, Rope, Stretch, read_shape, shape_json,
};
pub(crate) use causal::{
    Cache, Output, Row, dropout_of, end_of_text, ends_of_text, initial, read_json,
};
pub use cnn::{CNN_SIDE_MIN, Cnn};
pub(crate) use layers::Sight;
#[cfg(test)]
pub(crate) use layers::capped;
pub use perceptron::{Mlp, Perceptron};
pub use resnet::ResNet18;
pub use transformer::{Block, Transformer, TransformerShape};

use crate::Segments;
use burn::module::Module;
use burn::tensor::Tensor;

/// An image classifier of any architecture.
#[derive(Module, Debug)]
pub enum Classifier {
    /// One hidden layer.
    Mlp(Mlp),
    /// Two convolutions.
    Cnn(Cnn),
    /// Eighteen layers with shortcuts.
    ResNet18(ResNet18),
}

impl Classifier {
    /// Logits `[n, classes]` of images `[n, channels * height * width]`.
    pub fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.segmented(images, &mut Segments::whole())
    }

    /// The same, with boundaries between layers.
    pub fn segmented(&self, images: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        match self {
            Self::Mlp(model) => model.segmented(images, segments),
            Self::Cnn(model) => model.segmented(images, segments),
            Self::ResNet18(model) => model.segmented(images, segments),
        }
    }
}
