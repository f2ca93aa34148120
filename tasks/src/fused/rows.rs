//! Operations on each row of a matrix: a linear layer and a normalization.

use super::vector::{dot, kernel};
use super::{GRAIN, Input, Op, add_up, apply, product, tensor, transposed, values};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;

/// `x weight^T`; x: `[rows, input]`, weight: `[output, input]`. The weight's gradient lies in memory as the weight
/// does, where that of a transposed matrix would have to be turned for each step.
pub(crate) fn linear(x: &Tensor<2>, weight: &Tensor<2>) -> Option<Tensor<2>> {
    Some(apply(Linear, [Input::of(x)?, Input::of(weight)?]))
}

#[derive(Clone, Debug)]
struct Linear;

impl Op<2> for Linear {
    type Kept = [FlexTensor; 2];

    fn forward(&self, [x, weight]: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        (product(&x, &transposed(&weight)), [x, weight])
    }

    fn backward(
        &self,
        [x, weight]: Self::Kept,
        dy: FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        [
            wanted[0].then(|| product(&dy, &weight)),
            wanted[1].then(|| product(&transposed(&dy), &x)),
        ]
    }
}

/// `x / sqrt(mean(x^2) + eps) * weight` of each row.
///
/// **Source:** Zhang and Sennrich, Root mean square layer normalization, 2019, eq. 4.
pub(crate) fn rms_norm(x: &Tensor<2>, weight: &Tensor<1>, eps: f64) -> Option<Tensor<2>> {
    let op = RmsNorm { eps: eps as f32 };
    Some(apply(op, [Input::of(x)?, Input::of(weight)?]))
}

#[derive(Clone, Debug)]
struct RmsNorm {
    eps: f32,
}

impl Op<2> for RmsNorm {
    /// The inputs, and the factor of each row.
    type Kept = ([FlexTensor; 2], Vec<f32>);

    fn forward(&self, [x, weight]: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let (w, rows) = (values(&weight), x.layout().shape()[0]);
        let (mut out, mut factors) = (values(&x).to_vec(), vec![0.0; rows]);
        let lines = (GRAIN / w.len().max(1)).max(1);
        let parts = out.par_chunks_mut(lines * w.len());
        let parts = parts.zip(factors.par_chunks_mut(lines));
        parts.for_each(|(x, factors)| normalize(x, w, self.eps, factors));
        let shape = [rows, w.len()];
        (tensor(out, shape), ([x, weight], factors))
    }

    fn backward(
        &self,
        ([x, weight], factors): Self::Kept,
        mut dy: FlexTensor,
        _: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let w = values(&weight);
        let lines = (GRAIN / w.len().max(1)).max(1);
        let parts = dy.storage_mut::<f32>().par_chunks_mut(lines * w.len());
        let xs = values(&x).par_chunks(lines * w.len());
        let parts = parts.zip(xs.zip(factors.par_chunks(lines)));
        let by_weight = parts.map(|(dy, (x, factors))| {
            let mut dw = vec![0.0; w.len()];
            normalize_back(x, w, factors, &mut dw, dy);
            dw
        });
        let by_weight: Vec<_> = by_weight.collect();
        [Some(dy), Some(tensor(add_up(by_weight), [w.len()]))]
    }
}

kernel! {
    /// In place of x; keeps the factor of each row.
    fn normalize<'a>(x: &'a mut [f32], w: &'a [f32], eps: f32, factors: &'a mut [f32]) {
        for (x, factor) in x.chunks_exact_mut(w.len()).zip(factors) {
            *factor = 1.0 / (dot(x, x) / w.len() as f32 + eps).sqrt();
            for (x, w) in x.iter_mut().zip(w) {
                *x = *x * *factor * w;
            }
        }
    }

    /// `dx = f (w dy - x f^2 mean(w dy x))` in place of dy, and adds `dy x f` of each row to dw.
    fn normalize_back<'a>(
        x: &'a [f32],
        w: &'a [f32],
        factors: &'a [f32],
        dw: &'a mut [f32],
        dy: &'a mut [f32],
    ) {
        let rows = x.chunks_exact(w.len()).zip(dy.chunks_exact_mut(w.len()));
        for ((x, dy), f) in rows.zip(factors) {
            for ((dw, dy), (x, w)) in dw.iter_mut().zip(dy.iter_mut()).zip(x.iter().zip(w)) {
                *dw += *dy * x * f;
                *dy *= w;
            }
            let by_factor = dot(dy, x) / w.len() as f32 * f * f;
            for (dy, x) in dy.iter_mut().zip(x) {
                *dy = f * (*dy - x * by_factor);
            }
        }
    }
}
