//! The last layer of a language model with its loss: logits of a large vocabulary are never all in memory.

use super::vector::{exp, join, kernel};
use super::{GRAIN, Input, Op, apply, product, tensor, transposed, values};
use crate::loss::NATS_MAX;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Logits that are computed together, 64 MiB of them. Of a larger vocabulary a part at a time is computed, and
/// once more for the gradients.
const LOGITS: usize = 1 << 24;

/// The mean of `(1 - s) (-log p_y) + s mean(-log p)` over rows, p the softmax of `x weight^T`.
///
/// x: `[rows, width]`; weight: `[vocabulary, width]`; targets: one for each row, below the vocabulary. With a cap,
/// logits are `cap tanh(logit / cap)`.
/// Gradients are computed with the loss, that of the weight only if it is trained.
///
/// **Source:** the gradient without all logits: Hsu et al., Liger kernel, 2024, section 3.2.
pub(crate) fn output_loss(
    x: &Tensor<2>,
    weight: &Tensor<2>,
    cap: Option<f64>,
    targets: Arc<[u32]>,
    smoothing: f64,
) -> Option<Tensor<1>> {
    let inputs = [Input::of(x)?, Input::of(weight)?];
    let records = x.device().is_autodiff();
    let op = OutputLoss {
        targets,
        smoothing: smoothing as f32,
        cap: cap.map_or(f32::INFINITY, |cap| cap as f32),
        wanted: [records, records && weight.is_require_grad()],
        most: LOGITS,
    };
    Some(apply(op, inputs))
}

#[derive(Clone, Debug)]
struct OutputLoss {
    targets: Arc<[u32]>,
    smoothing: f32,
    /// Infinite for none.
    cap: f32,
    wanted: [bool; 2],
    most: usize,
}

/// What the softmax of a row needs, gathered over parts of the vocabulary.
#[derive(Clone, Copy)]
struct Row {
    most: f32,
    /// Sum of `e^(logit - most)`.
    sum: f32,
    /// Sum of the logits.
    total: f32,
    /// The target's logit.
    own: f32,
}

impl Row {
    const EMPTY: Self = Self {
        most: f32::NEG_INFINITY,
        sum: 0.0,
        total: 0.0,
        own: 0.0,
    };

    fn level(&self) -> f32 {
        self.most + self.sum.ln()
    }
}

impl OutputLoss {
    /// Parts of the vocabulary.
    fn parts(&self, vocabulary: usize) -> Vec<Range<usize>> {
        let part = (self.most / self.targets.len().max(1)).clamp(1, vocabulary);
        let starts = (0..vocabulary).step_by(part);
        starts
            .map(|start| start..vocabulary.min(start + part))
            .collect()
    }

    fn loss(&self, rows: &[Row], vocabulary: usize) -> f32 {
        let s = f64::from(self.smoothing);
        let each = rows.iter().map(|row| {
            let level = f64::from(row.level());
            let own = (level - f64::from(row.own)).min(NATS_MAX);
            let even = level - f64::from(row.total) / vocabulary as f64;
            // Without smoothing an infinite mean must not become NaN.
            if s > 0.0 {
                (1.0 - s) * own + s * even
            } else {
                own
            }
        });
        (each.sum::<f64>() / rows.len() as f64) as f32
    }

    /// In place of logits, their gradients.
    fn derive(
        &self,
        logits: &mut FlexTensor,
        part: &Range<usize>,
        rows: &[Row],
        vocabulary: usize,
    ) {
        let scale = 1.0 / rows.len() as f32;
        let even = self.smoothing * scale / vocabulary as f32;
        let hit = (1.0 - self.smoothing) * scale;
        each_row(logits, part.len(), |first, logits| {
            let rows = &rows[first..];
            gradients(logits, part.len(), rows, [scale, even, self.cap]);
            let lines = logits.chunks_exact_mut(part.len()).zip(rows);
            for ((line, row), target) in lines.zip(&self.targets[first..]) {
                if part.contains(&(*target as usize)) {
                    line[*target as usize - part.start] -= hit * slope(row.own, self.cap);
                }
            }
        });
    }
}

/// Calls `f` with some rows of logits and the number of the first one.
fn each_row(logits: &mut FlexTensor, width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let lines = (GRAIN / width).max(1);
    let chunks = logits.storage_mut::<f32>().par_chunks_mut(lines * width);
    chunks
        .enumerate()
        .for_each(|(chunk, logits)| f(chunk * lines, logits));
}

impl Op<2> for OutputLoss {
    /// The gradients of both, where they are wanted.
    type Kept = [Option<FlexTensor>; 2];

    fn forward(&self, [x, weight]: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let vocabulary = weight.layout().shape()[0];
        let parts = self.parts(vocabulary);
        let rows_of = |part: &Range<usize>| weight.narrow(0, part.start, part.len());
        let logits = |part: &Range<usize>| {
            let mut logits = product(&x, &transposed(&rows_of(part)));
            if self.cap.is_finite() {
                each_row(&mut logits, part.len(), |_, logits| bound(logits, self.cap));
            }
            logits
        };
        let mut rows = vec![Row::EMPTY; self.targets.len()];
        let mut last = None;
        for part in &parts {
            let found = logits(part);
            let lines = (GRAIN / part.len()).max(1);
            let chunks = values(&found).par_chunks(lines * part.len());
            let chunks = chunks.zip(rows.par_chunks_mut(lines));
            chunks
                .zip(self.targets.par_chunks(lines))
                .for_each(|((logits, rows), targets)| gather(logits, targets, part.start, rows));
            last = Some(found);
        }
        let loss = tensor(vec![self.loss(&rows, vocabulary)], [1]);
        if self.wanted == [false; 2] {
            return (loss, [None, None]);
        }
        let mut by_x: Option<FlexTensor> = None;
        let mut by_weight = self.wanted[1].then(|| Vec::with_capacity(values(&weight).len()));
        for part in &parts {
            // One part is at hand already.
            let again = last.take().filter(|_| parts.len() == 1);
            let mut found = again.unwrap_or_else(|| logits(part));
            self.derive(&mut found, part, &rows, vocabulary);
            let some = product(&found, &rows_of(part));
            by_x = Some(match by_x {
                None => some,
                Some(mut sum) => {
                    add(&mut sum, &some);
                    sum
                }
            });
            if let Some(all) = &mut by_weight {
                all.extend_from_slice(values(&product(&transposed(&found), &x)));
            }
        }
        let by_weight = by_weight.map(|all| tensor(all, [vocabulary, weight.layout().shape()[1]]));
        (loss, [by_x, by_weight])
    }

    fn backward(
        &self,
        kept: Self::Kept,
        up: FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let up = values(&up)[0];
        let mut index = 0;
        kept.map(|gradient| {
            index += 1;
            let mut gradient = gradient.filter(|_| wanted[index - 1])?;
            if up != 1.0 {
                let parts = gradient.storage_mut::<f32>().par_chunks_mut(GRAIN);
                parts.for_each(|part| part.iter_mut().for_each(|x| *x *= up));
            }
            Some(gradient)
        })
    }
}

/// The derivative of a capped logit by the logit.
#[inline(always)]
pub(super) fn slope(capped: f32, cap: f32) -> f32 {
    let ratio = capped / cap;
    1.0 - ratio * ratio
}

fn add(sum: &mut FlexTensor, more: &FlexTensor) {
    let parts = sum.storage_mut::<f32>().par_chunks_mut(GRAIN);
    let parts = parts.zip(values(more).par_chunks(GRAIN));
    parts.for_each(|(sum, more)| sum.iter_mut().zip(more).for_each(|(sum, x)| *sum += x));
}

/// Gathers a part of the vocabulary, which begins at this token, into rows.
fn gather(logits: &[f32], targets: &[u32], start: usize, rows: &mut [Row]) {
    let width = logits.len() / rows.len().max(1);
    let lines = logits.chunks_exact(width.max(1));
    for ((line, target), row) in lines.zip(targets).zip(rows) {
        let own = (*target as usize).checked_sub(start);
        if let Some(own) = own.and_then(|own| line.get(own)) {
            row.own = *own;
        }
        sum_up(line, row);
    }
}

/// `cap tanh(x / cap)` in place of x.
pub(super) fn bound(logits: &mut [f32], cap: f32) {
    bound_all(logits, cap);
}

kernel! {
    fn sum_up<'a>(line: &'a [f32], row: &'a mut Row) {
        let most = join(row.most, line, |a, b| if b > a { b } else { a });
        let mut lanes = [0.0; 16];
        let mut chunks = line.chunks_exact(16);
        for chunk in chunks.by_ref() {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += exp(*x - most);
            }
        }
        let rest = chunks.remainder().iter().map(|x| exp(x - most));
        let sum = lanes.iter().sum::<f32>() + rest.sum::<f32>();
        // Of the first part there is nothing before; the exponential of minus infinity is not zero here.
        let before = if row.sum > 0.0 { row.sum * exp(row.most - most) } else { 0.0 };
        row.sum = before + sum;
        row.total += join(0.0, line, |a, b| a + b);
        row.most = most;
    }

    fn bound_all<'a>(logits: &'a mut [f32], cap: f32) {
        logits.iter_mut().for_each(|x| *x = cap * (1.0 - 2.0 / (exp(2.0 * *x / cap) + 1.0)));
    }

    /// `(scale softmax - even) slope` in place of logits.
    fn gradients<'a>(logits: &'a mut [f32], width: usize, rows: &'a [Row], factors: [f32; 3]) {
        let [scale, even, cap] = factors;
        for (line, row) in logits.chunks_exact_mut(width).zip(rows) {
            let level = row.level();
            line.iter_mut().for_each(|x| *x = (exp(*x - level) * scale - even) * slope(*x, cap));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::smooth_cross_entropy;
    use crate::model::capped;
    use burn::tensor::{Device, Int, TensorData};

    fn leaf(seed: usize, shape: [usize; 2], device: &Device) -> Tensor<2> {
        let values =
            (0..shape[0] * shape[1]).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 9.0 - 1.2);
        let data = TensorData::new(values.collect::<Vec<f32>>(), shape);
        Tensor::from_data(data, device).require_grad()
    }

    fn gap<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
        (a - b).abs().max().into_scalar::<f32>()
    }

    #[test]
    fn loss_and_gradients_are_those_of_all_logits_however_they_are_cut() {
        let device = Device::flex().autodiff();
        let targets = [3_u32, 0, 36, 17, 36];
        let index: Vec<i32> = targets.iter().map(|&target| target as i32).collect();
        let none = f32::INFINITY;
        for (most, smoothing, cap) in [
            (1 << 20, 0.0, none),
            (60, 0.0, none),
            (1, 0.0, none),
            (60, 0.3, none),
            (60, 0.3, 0.7),
        ] {
            let leaves = || [leaf(1, [5, 8], &device), leaf(2, [37, 8], &device)];
            let (ours, theirs) = (leaves(), leaves());
            let op = OutputLoss {
                targets: Arc::from(targets),
                smoothing,
                cap,
                wanted: [true; 2],
                most,
            };
            let inputs = ours.each_ref().map(|x| Input::of(x).unwrap());
            let loss: Tensor<1> = apply(op, inputs);
            let [x, weight] = theirs.clone();
            let index = Tensor::<1, Int>::from_data(TensorData::new(index.clone(), [5]), &device);
            let bound = Some(f64::from(cap)).filter(|cap| cap.is_finite());
            let logits = capped(x.matmul(weight.transpose()), bound);
            let reference = smooth_cross_entropy(logits, index, f64::from(smoothing));
            assert!(gap(loss.clone().inner(), reference.clone().inner()) < 1e-5);
            // A factor behind the loss, as of a mean over batches.
            let (a, b) = ((loss * 0.5).backward(), (reference * 0.5).backward());
            for (ours, theirs) in ours.iter().zip(&theirs) {
                let apart = gap(ours.grad(&a).unwrap(), theirs.grad(&b).unwrap());
                assert!(apart < 1e-6, "{apart} with {most} logits");
            }
        }
    }
}
