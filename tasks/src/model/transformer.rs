//! A byte-level transformer. Its inner step on a processor is mostly matrix products: it has no
//! biases, no scales in the norms, relu and flat `[batch * context, width]` activations.

use super::layers::{Sight, attention};
use crate::{Segments, fused};
use burn::module::{Initializer, Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor};

/// Symbols: all bytes.
const SYMBOLS: usize = 256;

/// Added to mean squares, so that the norm of zeros is zeros.
const EPS: f32 = 1e-6;

/// The sizes of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformerShape {
    /// Blocks.
    pub layers: usize,
    /// Size of the vector for one byte; a multiple of `heads`.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Bytes that the model sees at once.
    pub context: usize,
}

/// Predicts the next byte.
#[derive(Module, Debug)]
pub struct Transformer {
    embed: Param<Tensor<2>>,
    position: Param<Tensor<2>>,
    blocks: Vec<Block>,
    output: Linear,
}

/// `x + attention(norm(x))`, then `x + feed(norm(x))`.
#[derive(Module, Debug)]
pub struct Block {
    query: Linear,
    key: Linear,
    value: Linear,
    join: Linear,
    widen: Linear,
    narrow: Linear,
    heads: usize,
}

impl Transformer {
    /// All parameters zero.
    ///
    /// # Panics
    /// When `heads` does not divide `width`.
    pub fn zeros(shape: TransformerShape, device: &Device) -> Self {
        let TransformerShape {
            layers,
            width,
            heads,
            context,
        } = shape;
        assert!(width.is_multiple_of(heads), "heads must divide the width");
        let zeros = |shape| Initializer::Zeros.init(shape, device);
        Self {
            embed: zeros([SYMBOLS, width]),
            position: zeros([context, width]),
            blocks: (0..layers)
                .map(|_| Block::zeros(width, heads, device))
                .collect(),
            output: linear(width, SYMBOLS, device),
        }
    }

    /// Logits `[batch * context, 256]` of the byte after each, with a boundary before every block and before
    /// the output; bytes: `[batch, context]`.
    ///
    /// # Panics
    /// When the windows are longer than the context.
    pub fn segmented(&self, bytes: Tensor<2, Int>, segments: &mut Segments) -> Tensor<2> {
        let [batch, context] = bytes.dims();
        let x = self.embed.val().select(0, bytes.reshape([batch * context]));
        let [_, width] = x.dims();
        let position = self.position.val().narrow(0, 0, context);
        let x = x.reshape([batch, context, width]) + position.unsqueeze();
        let mut x = x.reshape([batch * context, width]);
        for block in &self.blocks {
            x = block.forward(segments.boundary(x), batch);
        }
        self.output.forward(norm(segments.boundary(x)))
    }
}

impl Block {
    fn zeros(width: usize, heads: usize, device: &Device) -> Self {
        Self {
            query: linear(width, width, device),
            key: linear(width, width, device),
            value: linear(width, width, device),
            join: linear(width, width, device),
            widen: linear(width, 4 * width, device),
            narrow: linear(4 * width, width, device),
            heads,
        }
    }

    fn forward(&self, x: Tensor<2>, batch: usize) -> Tensor<2> {
        let [rows, width] = x.dims();
        let d = width / self.heads;
        let split = |x: Tensor<2>, factor: f64| {
            fused::heads(&x, [batch, d], factor, None).unwrap_or_else(|| {
                let x = (x * factor).reshape([batch, rows / batch, self.heads, d]);
                x.swap_dims(1, 2)
            })
        };
        let h = norm(x.clone());
        let q = split(self.query.forward(h.clone()), (d as f64).sqrt().recip());
        let k = split(self.key.forward(h.clone()), 1.0);
        let v = split(self.value.forward(h), 1.0);
        let mixed = attention(q, k, v, &Sight::default(), None);
        let mixed =
            fused::rows(&mixed).unwrap_or_else(|| mixed.swap_dims(1, 2).reshape([rows, width]));
        let x = x + self.join.forward(mixed);
        let h = relu(self.widen.forward(norm(x.clone())));
        x + self.narrow.forward(h)
    }
}

fn linear(input: usize, output: usize, device: &Device) -> Linear {
    let config = LinearConfig::new(input, output).with_bias(false);
    config.with_initializer(Initializer::Zeros).init(device)
}

/// `x / sqrt(mean(x^2) + eps)` of each row.
///
/// **Source:** Zhang and Sennrich, Root mean square layer normalization, 2019, eq. 4, without the
/// gain: the weights that follow take its place.
fn norm(x: Tensor<2>) -> Tensor<2> {
    let scale = (x.clone().square().mean_dim(1) + EPS).sqrt().recip();
    x * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;

    #[test]
    fn what_comes_later_is_not_seen() {
        let device = Device::flex();
        let shape = TransformerShape {
            layers: 1,
            width: 8,
            heads: 2,
            context: 4,
        };
        let mut state = 1_u32;
        let model = Transformer::zeros(shape, &device);
        let layout = crate::trainer::flat::layout(&model);
        let mut fill = |_, _, values: &mut [f32]| {
            for x in values {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *x = (state >> 8) as f32 / 8_388_608.0 - 1.0;
            }
        };
        let model = crate::trainer::flat::edit(model, &layout, 0..layout.len(), &mut fill);
        let logits = |bytes: [i32; 4]| {
            let bytes = Tensor::from_data(TensorData::new(bytes.to_vec(), [1, 4]), &device);
            model
                .segmented(bytes, &mut Segments::whole())
                .into_data()
                .try_to_vec::<f32>()
                .unwrap()
        };
        let (a, b) = (logits([1, 2, 3, 4]), logits([1, 2, 3, 200]));
        assert_eq!(a[..3 * 256], b[..3 * 256]);
        assert_ne!(a[3 * 256..], b[3 * 256..]);
    }
}
