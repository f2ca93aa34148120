//! Rotary position embedding.

use burn::tensor::{Device, Tensor, TensorData};
use std::ops::Range;

/// Rotary position embedding: the pair of values `(i, i + d / 2)` of a head is rotated by
/// `position theta^(-2 i / d)`. This is the order of Hugging Face's weights; the paper's pairs are
/// neighbours, which is the same after a permutation of the rows of the query and key weights.
///
/// Computed in f32, as `transformers` does, so that long positions agree.
///
/// **Source:** Su et al., RoFormer, 2021, eq. 34.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Base of the angles.
    pub theta: f64,
    /// Change of the frequencies.
    pub stretch: Stretch,
}

/// How frequencies are changed to reach longer sequences.
#[derive(Clone, Debug, PartialEq)]
pub enum Stretch {
    /// Not at all.
    None,
    /// All are divided by this.
    Linear(f64),
    /// Low ones are divided by `factor`, high ones stay, those between are interpolated.
    ///
    /// **Source:** Llama 3.1; `transformers`, `modeling_rope_utils.py`, `llama3`.
    Llama3 {
        /// Divides low frequencies.
        factor: f64,
        /// Wave lengths above `original / low` are low frequencies.
        low: f64,
        /// Wave lengths below `original / high` are high frequencies.
        high: f64,
        /// Longest sequence before the change.
        original: f64,
    },
}

impl Rope {
    /// Cosines and sines `[positions, head_width / 2]` of all angles, on a device.
    pub(super) fn tables(
        &self,
        positions: Range<usize>,
        head_width: usize,
        device: &Device,
    ) -> [Tensor<2>; 2] {
        let frequencies = self.frequencies(head_width);
        let count = positions.len();
        let angles =
            positions.flat_map(|position| frequencies.iter().map(move |f| position as f32 * f));
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for angle in angles {
            cosines.push(angle.cos());
            sines.push(angle.sin());
        }
        let shape = [count, head_width / 2];
        [cosines, sines].map(|table| Tensor::from_data(TensorData::new(table, shape), device))
    }

    fn frequencies(&self, head_width: usize) -> Vec<f32> {
        let exponent = |i: usize| (2 * i) as f32 / head_width as f32;
        let frequencies =
            (0..head_width / 2).map(|i| (self.theta as f32).powf(exponent(i)).recip());
        frequencies.map(|f| self.stretch.apply(f)).collect()
    }
}

impl Stretch {
    fn apply(&self, frequency: f32) -> f32 {
        match *self {
            Self::None => frequency,
            Self::Linear(factor) => frequency / factor as f32,
            Self::Llama3 {
                factor,
                low,
                high,
                original,
            } => {
                let length = std::f64::consts::TAU / f64::from(frequency);
                if length < original / high {
                    return frequency;
                }
                let slow = frequency / factor as f32;
                if length > original / low {
                    return slow;
                }
                let smooth = ((original / length - low) / (high - low)) as f32;
                (1.0 - smooth) * slow + smooth * frequency
            }
        }
    }
}

/// Rotates heads `[batch, heads, positions, d]` by the angles of [`Rope::tables`], which record nothing.
pub(super) fn rotate(x: Tensor<4>, [cosines, sines]: &[Tensor<2>; 2]) -> Tensor<4> {
    let (half, records) = (x.dims()[3] / 2, x.device().is_autodiff());
    let beside = |table: &Tensor<2>| match records {
        true => Tensor::from_inner(table.clone()),
        false => table.clone(),
    };
    let (cosines, sines) = (beside(cosines).unsqueeze(), beside(sines).unsqueeze());
    let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
    let first = a.clone() * cosines.clone() - b.clone() * sines.clone();
    Tensor::cat(vec![first, b * cosines + a * sines], 3)
}
