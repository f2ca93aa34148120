//! Causal attention whose masked scores are not computed on: a vector exponential over what a row may see.

use super::vector::{exp, join, kernel};
use super::{Input, Op, apply, product, transposed, values};
use crate::model::Sight;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;
use std::ops::Range;

/// Causal attention `softmax(q k^T) v`, in which each query sees what [`Sight`] says.
///
/// q (scaled): `[batch, heads, groups * queries, d]`; k, v: `[batch, heads, keys, d]`; result: as q.
///
/// **Source:** the gradient: Dao et al., FlashAttention, 2022, appendix B.2.
pub(crate) fn attention(
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    sight: &Sight,
) -> Option<Tensor<4>> {
    let inputs = [Input::of(q)?, Input::of(k)?, Input::of(v)?];
    Some(apply(Attention(sight.clone()), inputs))
}

#[derive(Clone, Debug)]
pub(super) struct Attention(pub(super) Sight);

/// The scores of the queries of one row and head: what a query sees is told by its place.
struct Blocks<'a> {
    sight: &'a Sight,
    /// Blocks of a row of the batch, one for each head of the queries.
    heads: usize,
    queries: usize,
    keys: usize,
}

impl<'a> Blocks<'a> {
    fn of(sight: &'a Sight, q: &FlexTensor, k: &FlexTensor) -> Self {
        let ([_, heads, rows, _], [_, _, keys, _]) = (sizes(q), sizes(k));
        let queries = keys - sight.before;
        Self {
            sight,
            heads: heads * rows / queries,
            queries,
            keys,
        }
    }

    const fn size(&self) -> usize {
        self.queries * self.keys
    }

    #[inline(always)]
    fn seen(&self, block: usize, query: usize) -> Range<usize> {
        self.sight.of(block / self.heads, query, self.queries)
    }
}

fn sizes(x: &FlexTensor) -> [usize; 4] {
    let layout = x.layout();
    let shape = layout.shape();
    [shape[0], shape[1], shape[2], shape[3]]
}

impl Op<3> for Attention {
    /// Queries, keys, values, and the softmax.
    type Kept = [FlexTensor; 4];

    fn forward(&self, [q, k, v]: [FlexTensor; 3]) -> (FlexTensor, Self::Kept) {
        let blocks = Blocks::of(&self.0, &q, &k);
        let mut p = product(&q, &transposed(&k));
        let scores = p.storage_mut::<f32>().par_chunks_mut(blocks.size());
        let each = scores.enumerate();
        each.for_each(|(block, scores)| softmax(scores, &blocks, block));
        (product(&p, &v), [q, k, v, p])
    }

    fn backward(
        &self,
        [q, k, v, p]: Self::Kept,
        up: FlexTensor,
        _: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let blocks = Blocks::of(&self.0, &q, &k);
        let by_v = product(&transposed(&p), &up);
        let mut by_scores = product(&up, &transposed(&v));
        let derivatives = by_scores.storage_mut::<f32>().par_chunks_mut(blocks.size());
        let each = derivatives.zip(values(&p).par_chunks(blocks.size()));
        let each = each.enumerate();
        each.for_each(|(block, (derivatives, p))| derive(derivatives, p, &blocks, block));
        let by_q = product(&by_scores, &k);
        let by_k = product(&transposed(&by_scores), &q);
        [by_q, by_k, by_v].map(Some)
    }
}

kernel! {
    /// Softmax of what each query sees, in place, and zeros beside it.
    fn softmax<'a>(scores: &'a mut [f32], blocks: &'a Blocks<'a>, block: usize) {
        for (query, scores) in scores.chunks_exact_mut(blocks.keys).enumerate() {
            let range = blocks.seen(block, query);
            scores[..range.start].fill(0.0);
            scores[range.end..].fill(0.0);
            let seen = &mut scores[range];
            // NaN is ignored here. The exponentials of its row are NaN all the same.
            let most = join(f32::NEG_INFINITY, seen, |a, b| if b > a { b } else { a });
            seen.iter_mut().for_each(|x| *x = exp(*x - most));
            let scale = 1.0 / join(0.0, seen, |a, b| a + b);
            seen.iter_mut().for_each(|x| *x *= scale);
        }
    }

    /// `P (dP - rowsum(P dP))` in place of dP.
    fn derive<'a>(dp: &'a mut [f32], p: &'a [f32], blocks: &'a Blocks<'a>, block: usize) {
        let rows = dp.chunks_exact_mut(blocks.keys).zip(p.chunks_exact(blocks.keys));
        for (query, (dp, p)) in rows.enumerate() {
            let range = blocks.seen(block, query);
            dp[..range.start].fill(0.0);
            dp[range.end..].fill(0.0);
            let (seen, p) = (&mut dp[range.clone()], &p[range]);
            seen.iter_mut().zip(p).for_each(|(dp, p)| *dp *= p);
            let shared = join(0.0, seen, |a, b| a + b);
            seen.iter_mut().zip(p).for_each(|(dp, p)| *dp -= p * shared);
        }
    }
}
