//! The activation of GPT-2.

use super::vector::{kernel, sigmoid};
use super::{GRAIN, Input, Op, apply, values};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;

/// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
///
/// **Source:** Hendrycks and Gimpel, Gaussian error linear units, 2016, section 2.
pub(crate) fn gelu(x: &Tensor<2>) -> Option<Tensor<2>> {
    Some(apply(Gelu, [Input::of(x)?]))
}

#[derive(Clone, Debug)]
struct Gelu;

impl Op<1> for Gelu {
    type Kept = FlexTensor;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let mut out = FlexTensor::from_data(x.clone().into_data());
        let parts = out.storage_mut().par_chunks_mut(GRAIN);
        parts.for_each(gelu_of);
        (out, x)
    }

    fn backward(&self, x: FlexTensor, mut dy: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let parts = dy.storage_mut().par_chunks_mut(GRAIN);
        let parts = parts.zip(values(&x).par_chunks(GRAIN));
        parts.for_each(|(dy, x)| gelu_back(x, dy));
        [Some(dy)]
    }
}

/// `1 + tanh(z / 2) = 2 sigmoid(z)`: z and its derivative by x.
#[inline(always)]
fn gelu_inner(x: f32) -> [f32; 2] {
    const TWICE: f32 = 1.595_769;
    let square = x * x;
    [
        TWICE * x * (1.0 + 0.044_715 * square),
        TWICE * (1.0 + 0.134_145 * square),
    ]
}

kernel! {
    /// In place of x.
    fn gelu_of<'a>(x: &'a mut [f32]) {
        x.iter_mut().for_each(|x| *x *= sigmoid(gelu_inner(*x)[0]));
    }

    /// In place of dy.
    fn gelu_back<'a>(x: &'a [f32], dy: &'a mut [f32]) {
        for (dy, x) in dy.iter_mut().zip(x) {
            let [z, dz] = gelu_inner(*x);
            let s = sigmoid(z);
            *dy *= s + x * (s * (1.0 - s)) * dz;
        }
    }
}
