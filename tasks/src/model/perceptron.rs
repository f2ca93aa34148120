//! A perceptron with any number of hidden layers.

use crate::Segments;
use burn::module::{Initializer, Module};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

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
        let linear = |input, output| {
            LinearConfig::new(input, output)
                .with_initializer(Initializer::Zeros)
                .init(device)
        };
        let width = |layer| if layer == 0 { inputs } else { hidden };
        Self {
            layers: (0..layers)
                .map(|layer| linear(width(layer), hidden))
                .collect(),
            output: linear(width(layers), outputs),
        }
    }

    /// Outputs `[n, outputs]` of rows `[n, inputs]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.segmented(x, &mut Segments::whole())
    }

    /// The same, with a boundary after each hidden layer.
    pub fn segmented(&self, x: Tensor<2>, segments: &mut Segments) -> Tensor<2> {
        let mut x = x;
        for layer in &self.layers {
            x = segments.boundary(relu(layer.forward(x)));
        }
        self.output.forward(x)
    }
}
