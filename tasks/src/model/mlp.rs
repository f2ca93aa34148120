//! A perceptron with one hidden layer.

use crate::Segments;
use burn::module::{Initializer, Module};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// `logits = W2 relu(W1 x + b1) + b2`.
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Linear,
    output: Linear,
}

impl Mlp {
    /// All parameters zero.
    pub fn zeros(pixels: usize, hidden: usize, classes: usize, device: &Device) -> Self {
        let linear = |input, output| {
            LinearConfig::new(input, output)
                .with_initializer(Initializer::Zeros)
                .init(device)
        };
        Self {
            hidden: linear(pixels, hidden),
            output: linear(hidden, classes),
        }
    }

    /// Logits `[n, classes]` of images `[n, pixels]`.
    pub fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.segmented(images, &mut Segments::whole())
    }

    /// The same, with a boundary before the output.
    pub fn segmented(&self, images: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        let x = segments.boundary(relu(self.hidden.forward(images)));
        self.output.forward(x)
    }
}
