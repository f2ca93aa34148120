//! The activations of GPT-2 and of Llama.

use super::vector::{kernel, sigmoid};
use super::{GRAIN, Input, Op, apply, own, values};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;

/// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
///
/// **Source:** Hendrycks and Gimpel, Gaussian error linear units, 2016, section 2.
pub(crate) fn gelu(x: &Tensor<2>) -> Option<Tensor<2>> {
    Some(apply(Gelu, [Input::of(x)?]))
}

/// `gate sigmoid(gate) up`.
///
/// **Source:** Shazeer, GLU variants improve transformer, 2020, eq. 5 (SwiGLU).
pub(crate) fn gated(gate: &Tensor<2>, up: &Tensor<2>) -> Option<Tensor<2>> {
    Some(apply(Gated, [Input::of(gate)?, Input::of(up)?]))
}

#[derive(Clone, Debug)]
struct Gated;

impl Op<2> for Gated {
    type Kept = [FlexTensor; 2];

    fn forward(&self, [gate, up]: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let mut out = own(&gate);
        let parts = out.storage_mut().par_chunks_mut(GRAIN);
        let parts = parts.zip(values(&up).par_chunks(GRAIN));
        parts.for_each(|(gate, up)| gated_of(up, gate));
        (out, [gate, up])
    }

    fn backward(
        &self,
        [gate, up]: Self::Kept,
        mut dy: FlexTensor,
        _: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let mut by_up = own(&dy);
        let parts = dy.storage_mut().par_chunks_mut(GRAIN);
        let parts = parts.zip(by_up.storage_mut().par_chunks_mut(GRAIN));
        let inputs = values(&gate).par_chunks(GRAIN);
        let inputs = inputs.zip(values(&up).par_chunks(GRAIN));
        parts
            .zip(inputs)
            .for_each(|((dy, by_up), (gate, up))| gated_back(gate, up, by_up, dy));
        [Some(dy), Some(by_up)]
    }
}

#[derive(Clone, Debug)]
struct Gelu;

impl Op<1> for Gelu {
    type Kept = FlexTensor;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let mut out = own(&x);
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
    /// In place of the gate.
    fn gated_of<'a>(up: &'a [f32], gate: &'a mut [f32]) {
        for (gate, up) in gate.iter_mut().zip(up) {
            *gate = *gate * sigmoid(*gate) * up;
        }
    }

    /// In place of dy, which is in `by_up` too.
    fn gated_back<'a>(gate: &'a [f32], up: &'a [f32], by_up: &'a mut [f32], dy: &'a mut [f32]) {
        let inputs = gate.iter().zip(up);
        for ((dy, by_up), (gate, up)) in dy.iter_mut().zip(by_up).zip(inputs) {
            let s = sigmoid(*gate);
            *by_up *= gate * s;
            *dy *= up * (s + gate * (s * (1.0 - s)));
        }
    }

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
