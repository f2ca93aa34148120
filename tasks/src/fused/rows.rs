//! Linear layers, and normalizations of rows or of groups of channels.

use super::vector::{dot, join, kernel};
use super::{GRAIN, Input, Op, add_up, apply, own, product, tensor, transposed, values};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;
use std::ops::Range;

/// `x weight^T + bias`; x: `[rows, input]`, weight: `[output, input]`, or `[input, output]` if `input_first`. The
/// weight's gradient lies in memory as the weight does, where that of a transposed matrix would have to be turned
/// for each step.
pub(crate) fn linear(
    x: &Tensor<2>,
    weight: &Tensor<2>,
    bias: Option<&Tensor<1>>,
    input_first: bool,
) -> Option<Tensor<2>> {
    let (op, x, weight) = (Linear { input_first }, Input::of(x)?, Input::of(weight)?);
    Some(match bias {
        Some(bias) => apply(op, [x, weight, Input::of(bias)?]),
        None => apply(op, [x, weight]),
    })
}

#[derive(Clone, Debug)]
struct Linear {
    input_first: bool,
}

impl<const N: usize> Op<N> for Linear {
    /// x and weight.
    type Kept = [FlexTensor; 2];

    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Kept) {
        let (x, weight) = (inputs[0].clone(), inputs[1].clone());
        let mut y = if self.input_first {
            product(&x, &weight)
        } else {
            product(&x, &transposed(&weight))
        };
        if let Some(bias) = inputs.get(2).map(values) {
            let parts = y.storage_mut().par_chunks_mut(lines(bias.len()));
            parts.for_each(|y| add_to_rows(bias, y));
        }
        (y, [x, weight])
    }

    fn backward(
        &self,
        [x, weight]: Self::Kept,
        dy: FlexTensor,
        wanted: [bool; N],
    ) -> [Option<FlexTensor>; N] {
        let mut all = [const { None }; N];
        let (by_x, by_weight) = if self.input_first {
            (transposed(&weight), [transposed(&x), dy.clone()])
        } else {
            (weight, [transposed(&dy), x])
        };
        all[0] = wanted[0].then(|| product(&dy, &by_x));
        all[1] = wanted[1].then(|| product(&by_weight[0], &by_weight[1]));
        if N == 3 {
            let width = dy.layout().shape()[1];
            let parts = values(&dy).par_chunks(lines(width)).map(|dy| {
                let mut sums = vec![0.0; width];
                add_rows(dy, &mut sums);
                sums
            });
            all[2] = Some(tensor(add_up(parts.collect()), [width]));
        }
        all
    }
}

/// Values in one task, in whole rows.
fn lines(width: usize) -> usize {
    (GRAIN / width.max(1)).max(1) * width
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` of each of the `groups` into which the channels of a sample are cut;
/// without a bias `x / sqrt(mean(x^2) + eps) * weight`.
///
/// x: `[samples, channels, ..]`; weight and bias: `[channels]`.
pub(crate) fn norm<const D: usize>(
    x: &Tensor<D>,
    weight: &Tensor<1>,
    bias: Option<&Tensor<1>>,
    groups: usize,
    eps: f64,
) -> Option<Tensor<D>> {
    let eps = eps as f32;
    let (op, x, weight) = (Norm { groups, eps }, Input::of(x)?, Input::of(weight)?);
    Some(match bias {
        Some(bias) => apply(op, [x, weight, Input::of(bias)?]),
        None => apply(op, [x, weight]),
    })
}

#[derive(Clone, Debug)]
struct Norm {
    groups: usize,
    eps: f32,
}

impl Norm {
    /// Values and groups of one task, in whole samples.
    fn task(&self, x: &FlexTensor) -> [usize; 2] {
        let sample = (values(x).len() / x.layout().shape()[0].max(1)).max(1);
        [lines(sample), lines(sample) / sample * self.groups]
    }
}

impl<const N: usize> Op<N> for Norm {
    /// x, the weight, and the mean and factor of each group.
    type Kept = ([FlexTensor; 2], Vec<[f32; 2]>);

    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Kept) {
        let (x, weight) = (inputs[0].clone(), inputs[1].clone());
        let (w, b) = (values(&weight), inputs.get(2).map_or(&[][..], values));
        let [task, groups] = self.task(&x);
        let mut out = own(&x);
        let mut kept = vec![[0.0; 2]; x.layout().shape()[0] * self.groups];
        let parts = out.storage_mut().par_chunks_mut(task);
        let parts = parts.zip(kept.par_chunks_mut(groups));
        parts.for_each(|(x, kept)| normalize(x, w, b, self.groups, self.eps, kept));
        (out, ([x, weight], kept))
    }

    fn backward(
        &self,
        ([x, weight], kept): Self::Kept,
        mut dy: FlexTensor,
        _: [bool; N],
    ) -> [Option<FlexTensor>; N] {
        let (w, [task, groups]) = (values(&weight), self.task(&x));
        let parts = dy.storage_mut::<f32>().par_chunks_mut(task);
        let parts = parts.zip(values(&x).par_chunks(task));
        let sums = parts.zip(kept.par_chunks(groups)).map(|((dy, x), kept)| {
            let mut sums = [vec![0.0; w.len()], vec![0.0; w.len()]];
            normalize_back(x, w, self.groups, kept, &mut sums, dy, N == 3);
            sums.into()
        });
        let (by_weight, by_bias) = sums.unzip();
        let mut all = [const { None }; N];
        all[0] = Some(dy);
        all[1] = Some(tensor(add_up(by_weight), [w.len()]));
        if N == 3 {
            all[2] = Some(tensor(add_up(by_bias), [w.len()]));
        }
        all
    }
}

/// The channels of a group.
#[inline(always)]
fn channels(group: usize, groups: usize, all: usize) -> Range<usize> {
    let first = group % groups * (all / groups);
    first..first + all / groups
}

/// Calls `f` for each value with the parameter of its channel.
#[inline(always)]
fn each(x: &mut [f32], params: &[f32], f: impl Fn(&mut f32, f32)) {
    if x.len() == params.len() {
        x.iter_mut().zip(params).for_each(|(x, w)| f(x, *w));
    } else {
        let channels = x.chunks_exact_mut(x.len() / params.len()).zip(params);
        channels.for_each(|(x, w)| x.iter_mut().for_each(|x| f(x, *w)));
    }
}

kernel! {
    fn add_to_rows<'a>(bias: &'a [f32], rows: &'a mut [f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(x, bias)| *x += bias);
        }
    }

    fn add_rows<'a>(rows: &'a [f32], sums: &'a mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    }

    /// In place of x; keeps the mean and the factor of each group.
    fn normalize<'a>(x: &'a mut [f32], w: &'a [f32], b: &'a [f32], groups: usize, eps: f32, kept: &'a mut [[f32; 2]]) {
        let size = x.len() / kept.len();
        for (group, (x, kept)) in x.chunks_exact_mut(size).zip(kept).enumerate() {
            let channels = channels(group, groups, w.len());
            if !b.is_empty() {
                kept[0] = join(0.0, x, |a, b| a + b) / size as f32;
                x.iter_mut().for_each(|x| *x -= kept[0]);
            }
            kept[1] = 1.0 / (dot(x, x, 0.0) / size as f32 + eps).sqrt();
            each(x, &w[channels.clone()], |x, w| *x = *x * kept[1] * w);
            if !b.is_empty() {
                each(x, &b[channels], |x, b| *x += b);
            }
        }
    }

    /// With `z = (x - mean) f` puts `dx = f (w dy - mean(w dy) - z mean(w dy z))` in place of dy, and adds the sums of
    /// `dy z` and of dy of each channel; without a bias, the mean is zero and `mean(w dy)` left out.
    fn normalize_back<'a>(
        x: &'a [f32],
        w: &'a [f32],
        groups: usize,
        kept: &'a [[f32; 2]],
        sums: &'a mut [Vec<f32>; 2],
        dy: &'a mut [f32],
        centred: bool,
    ) {
        let (size, [dw, db]) = (x.len() / kept.len(), sums);
        let all = x.chunks_exact(size).zip(dy.chunks_exact_mut(size)).zip(kept);
        for (group, ((x, dy), [mean, f])) in all.enumerate() {
            let channels = channels(group, groups, w.len());
            let run = size / channels.len();
            let sums = dw[channels.clone()].iter_mut().zip(&mut db[channels.clone()]);
            if run == 1 {
                for ((dw, db), (x, dy)) in sums.zip(x.iter().zip(&*dy)) {
                    *dw += dy * (x - mean) * f;
                    *db += dy;
                }
            } else {
                for ((dw, db), (x, dy)) in sums.zip(x.chunks_exact(run).zip(dy.chunks_exact(run))) {
                    *dw += dot(dy, x, *mean) * f;
                    *db += join(0.0, dy, |a, b| a + b);
                }
            }
            each(dy, &w[channels], |dy, w| *dy *= w);
            let shared = if centred { join(0.0, dy, |a, b| a + b) / size as f32 } else { 0.0 };
            let by_factor = dot(dy, x, *mean) / size as f32 * f * f;
            for (dy, x) in dy.iter_mut().zip(x) {
                *dy = f * (*dy - shared - (x - mean) * by_factor);
            }
        }
    }
}
