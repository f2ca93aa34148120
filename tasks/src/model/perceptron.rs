//! Perceptrons: with one hidden layer, and with any number of them.

use crate::Segments;
use burn::module::{Initializer, Module};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

/// A linear layer of zeros.
pub(super) fn zeros(input: usize, output: usize, device: &Device) -> Linear {
    let linear = LinearConfig::new(input, output);
    linear.with_initializer(Initializer::Zeros).init(device)
}

/// `logits = W2 relu(W1 x + b1) + b2`.
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Linear,
    output: Linear,
}

impl Mlp {
    /// All parameters zero.
    pub fn zeros(pixels: usize, hidden: usize, classes: usize, device: &Device) -> Self {
        let linear = |input, output| zeros(input, output, device);
        Self {
            hidden: linear(pixels, hidden),
            output: linear(hidden, classes),
        }
    }

    /// Logits `[n, classes]` of images `[n, pixels]`, with a boundary before the output.
    pub fn segmented(&self, images: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        let x = segments.boundary(relu(self.hidden.forward(images)));
        self.output.forward(x)
    }
}

/// `y = W_k h_k + b_k` with `h_0 = x`, `h_(i+1) = relu(W_i h_i + b_i)`. Without hidden layers it is linear.
#[derive(Module, Debug)]
pub struct Perceptron {
    layers: Vec<Linear>,
    output: Linear,
}

impl Perceptron {
    /// All parameters zero.
    pub fn zeros(
        inputs: usize,
        layers: usize,
        hidden: usize,
        outputs: usize,
        device: &Device,
    ) -> Self {
        let linear = |input, output| zeros(input, output, device);
        let width = |layer| if layer == 0 { inputs } else { hidden };
        Self {
            layers: (0..layers)
                .map(|layer| linear(width(layer), hidden))
                .collect(),
            output: linear(width(layers), outputs),
        }
    }

    /// Outputs `[n, outputs]` of rows `[n, inputs]`, with a boundary after each hidden layer.
    pub fn segmented(&self, mut x: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        for layer in &self.layers {
            x = segments.boundary(relu(layer.forward(x)));
        }
        self.output.forward(x)
    }
}
