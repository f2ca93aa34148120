//! Causal attention whose masked scores are not computed on: a vector exponential over what a row may see.

use super::vector::{exp, join, kernel};
use super::{Input, Op, apply, product, transposed, values};
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;

/// Causal attention `softmax(q k^T) v`, in which row i of each `context` rows sees positions up to i.
///
/// q (scaled): `[batch, heads, groups * context, d]`; k, v: `[batch, heads, context, d]`; result: as q.
///
/// **Source:** the gradient: Dao et al., FlashAttention, 2022, appendix B.2.
pub(crate) fn attention(q: &Tensor<4>, k: &Tensor<4>, v: &Tensor<4>) -> Option<Tensor<4>> {
    let inputs = [Input::of(q)?, Input::of(k)?, Input::of(v)?];
    Some(apply(Attention, inputs))
}

#[derive(Clone, Debug)]
pub(super) struct Attention;

impl Op<3> for Attention {
    /// Queries, keys, values, and the softmax.
    type Kept = [FlexTensor; 4];

    fn forward(&self, [q, k, v]: [FlexTensor; 3]) -> (FlexTensor, Self::Kept) {
        let context = k.layout().shape()[2];
        let mut p = product(&q, &transposed(&k));
        let scores = p.storage_mut::<f32>();
        let blocks = scores.par_chunks_mut(context * context);
        blocks.for_each(|scores| softmax(scores, context));
        (product(&p, &v), [q, k, v, p])
    }

    fn backward(
        &self,
        [q, k, v, p]: Self::Kept,
        up: FlexTensor,
        _: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let context = k.layout().shape()[2];
        let by_v = product(&transposed(&p), &up);
        let mut by_scores = product(&up, &transposed(&v));
        let derivatives = by_scores.storage_mut::<f32>();
        let blocks = derivatives.par_chunks_mut(context * context);
        let blocks = blocks.zip(values(&p).par_chunks(context * context));
        blocks.for_each(|(derivatives, p)| derive(derivatives, p, context));
        let by_q = product(&by_scores, &k);
        let by_k = product(&transposed(&by_scores), &q);
        [by_q, by_k, by_v].map(Some)
    }
}

kernel! {
    /// Softmax of what each row sees, in place, and zeros behind it.
    fn softmax<'a>(scores: &'a mut [f32], context: usize) {
        for (row, scores) in scores.chunks_exact_mut(context).enumerate() {
            let (seen, later) = scores.split_at_mut(row + 1);
            // NaN is ignored here. The exponentials of its row are NaN all the same.
            let most = join(f32::NEG_INFINITY, seen, |a, b| if b > a { b } else { a });
            seen.iter_mut().for_each(|x| *x = exp(*x - most));
            let scale = 1.0 / join(0.0, seen, |a, b| a + b);
            seen.iter_mut().for_each(|x| *x *= scale);
            later.fill(0.0);
        }
    }

    /// `P (dP - rowsum(P dP))` in place of dP.
    fn derive<'a>(dp: &'a mut [f32], p: &'a [f32], context: usize) {
        let rows = dp.chunks_exact_mut(context).zip(p.chunks_exact(context));
        for (row, (dp, p)) in rows.enumerate() {
            let (seen, later) = dp.split_at_mut(row + 1);
            seen.iter_mut().zip(p).for_each(|(dp, p)| *dp *= p);
            let shared = join(0.0, seen, |a, b| a + b);
            seen.iter_mut().zip(p).for_each(|(dp, p)| *dp -= p * shared);
            later.fill(0.0);
        }
    }
}
