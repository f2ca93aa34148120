//! Causal attention whose masked scores are not computed on: a vector exponential over what a row may see.

use super::output::{bound, slope};
use super::vector::{exp, join, kernel};
use super::{Input, Op, apply, own, product, tensor, transposed, values};
use crate::model::Sight;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use rayon::prelude::*;
use std::ops::Range;

/// Scores that are kept for the backward pass, 64 MiB of them. Of more, a tile at a time is computed, and once more
/// in the backward pass.
const SCORES: usize = 1 << 24;

/// Queries of a tile.
const TILE: usize = 256;

/// Causal attention `softmax(q k^T) v`, in which each query sees what [`Sight`] says.
///
/// q (scaled): `[batch, heads, groups * queries, d]`; k, v: `[batch, heads, keys, d]`; result: as q. With a cap,
/// scores are `cap tanh(score / cap)`.
///
/// **Source:** the gradient and the tiles: Dao et al., FlashAttention, 2022, section 3.1 and appendix B.2.
pub(crate) fn attention(
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    sight: &Sight,
    cap: Option<f64>,
) -> Option<Tensor<4>> {
    let inputs = [Input::of(q)?, Input::of(k)?, Input::of(v)?];
    let cap = cap.map(|cap| cap as f32);
    let op = Attention {
        cap,
        ..Attention::new(sight)
    };
    Some(apply(op, inputs))
}

#[derive(Clone, Debug)]
pub(super) struct Attention {
    sight: Sight,
    /// The most scores that are kept. None are with a cap, whose derivative needs more than the softmax.
    most: usize,
    cap: Option<f32>,
}

impl Attention {
    pub(super) fn new(sight: &Sight) -> Self {
        let sight = sight.clone();
        Self {
            sight,
            most: SCORES,
            cap: None,
        }
    }
}

/// Some queries of one row of the batch, and the keys of which they see some.
struct Lines<'a> {
    sight: &'a Sight,
    batch: usize,
    /// The place of the first among all queries of a row.
    first: usize,
    queries: usize,
    keys: Range<usize>,
}

impl Lines<'_> {
    /// What a query sees of the keys, by its place among these lines.
    #[inline(always)]
    fn seen(&self, line: usize) -> Range<usize> {
        let seen = self.sight.of(self.batch, self.first + line, self.queries);
        seen.start - self.keys.start..seen.end - self.keys.start
    }
}

/// The sizes of an attention.
struct Sizes<'a> {
    sight: &'a Sight,
    batch: usize,
    heads: usize,
    /// Query heads for each head of keys.
    groups: usize,
    queries: usize,
    keys: usize,
    d: usize,
}

impl<'a> Sizes<'a> {
    fn of(sight: &'a Sight, q: &FlexTensor, k: &FlexTensor) -> Self {
        let (q, k) = (q.layout().shape(), k.layout().shape());
        let queries = k[2] - sight.before;
        Self {
            sight,
            batch: q[0],
            heads: q[1],
            groups: q[2] / queries,
            queries,
            keys: k[2],
            d: q[3],
        }
    }

    /// Scores of one query head.
    const fn block(&self) -> usize {
        self.queries * self.keys
    }

    const fn scores(&self) -> usize {
        self.batch * self.heads * self.groups * self.block()
    }

    /// All queries of a query head, by its number in the batch.
    fn whole(&self, block: usize) -> Lines<'a> {
        Lines {
            sight: self.sight,
            batch: block / (self.heads * self.groups),
            first: 0,
            queries: self.queries,
            keys: 0..self.keys,
        }
    }

    /// The tiles of one head of keys, each with its place among the rows of queries.
    fn tiles(&self, batch: usize) -> impl Iterator<Item = (usize, Lines<'a>)> {
        let (sight, queries) = (self.sight, self.queries);
        let starts = (0..self.groups).flat_map(move |group| {
            (0..queries)
                .step_by(TILE)
                .map(move |first| (group * queries + first, first))
        });
        starts.map(move |(row, first)| {
            let of = |query| sight.of(batch, query, queries);
            let all = first..queries.min(first + TILE);
            let begin = all.clone().map(|query| of(query).start).min();
            let lines = Lines {
                sight,
                batch,
                first,
                queries,
                keys: begin.unwrap_or(0)..of(all.end - 1).end,
            };
            (row, lines)
        })
    }

    /// Calls `f` with each head of keys, by its place in batch and heads.
    fn each_head<T: Send>(&self, f: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
        let all = (0..self.batch * self.heads).into_par_iter();
        all.map(|at| f(at / self.heads, at % self.heads)).collect()
    }
}

/// The matrix of one head, some rows of it.
fn rows_of(x: &FlexTensor, [batch, head]: [usize; 2], rows: &Range<usize>) -> FlexTensor {
    let one = x.narrow(0, batch, 1).narrow(1, head, 1);
    one.narrow(2, rows.start, rows.len())
}

/// The softmax of a tile, and with a cap the scores in front of it.
fn tile_of(
    q: &FlexTensor,
    k: &FlexTensor,
    lines: &Lines<'_>,
    cap: Option<f32>,
) -> (FlexTensor, Option<FlexTensor>) {
    let mut p = product(q, &transposed(k));
    let capped = cap.map(|cap| {
        bound(p.storage_mut(), cap);
        own(&p)
    });
    softmax(p.storage_mut(), lines);
    (p, capped)
}

/// Adds a product to some rows of a sum.
fn add_to(sum: &mut [f32], rows: &Range<usize>, d: usize, more: &FlexTensor) {
    let sum = &mut sum[rows.start * d..rows.end * d];
    sum.iter_mut()
        .zip(values(more))
        .for_each(|(sum, x)| *sum += x);
}

impl Attention {
    fn tiled(&self, sizes: &Sizes<'_>, [q, k, v]: &[FlexTensor; 3]) -> FlexTensor {
        let heads = sizes.each_head(|batch, head| {
            let place = [batch, head];
            let mut out = Vec::with_capacity(sizes.groups * sizes.queries * sizes.d);
            for (row, lines) in sizes.tiles(batch) {
                let rows = row..row + TILE.min(sizes.queries - lines.first);
                let [k, v] = [k, v].map(|x| rows_of(x, place, &lines.keys));
                let (p, _) = tile_of(&rows_of(q, place, &rows), &k, &lines, self.cap);
                out.extend_from_slice(values(&product(&p, &v)));
            }
            out
        });
        tensor(heads.concat(), shape(q))
    }

    fn tiled_back(
        &self,
        sizes: &Sizes<'_>,
        [q, k, v]: &[FlexTensor; 3],
        up: &FlexTensor,
    ) -> [FlexTensor; 3] {
        let heads = sizes.each_head(|batch, head| {
            let (place, d) = ([batch, head], sizes.d);
            let mut by_q = Vec::with_capacity(sizes.groups * sizes.queries * d);
            let [mut by_k, mut by_v] = [(); 2].map(|()| vec![0.0; sizes.keys * d]);
            for (row, lines) in sizes.tiles(batch) {
                let rows = row..row + TILE.min(sizes.queries - lines.first);
                let [k, v] = [k, v].map(|x| rows_of(x, place, &lines.keys));
                let [q, up] = [q, up].map(|x| rows_of(x, place, &rows));
                let (p, capped) = tile_of(&q, &k, &lines, self.cap);
                add_to(&mut by_v, &lines.keys, d, &product(&transposed(&p), &up));
                let mut by_scores = product(&up, &transposed(&v));
                derive(by_scores.storage_mut(), values(&p), &lines);
                if let (Some(capped), Some(cap)) = (&capped, self.cap) {
                    let pairs = by_scores.storage_mut::<f32>().iter_mut();
                    let pairs = pairs.zip(values(capped));
                    pairs.for_each(|(by, capped)| *by *= slope(*capped, cap));
                }
                by_q.extend_from_slice(values(&product(&by_scores, &k)));
                let some = product(&transposed(&by_scores), &q);
                add_to(&mut by_k, &lines.keys, d, &some);
            }
            [by_q, by_k, by_v]
        });
        let part = |index: usize, like: &FlexTensor| {
            let all: Vec<&[f32]> = heads.iter().map(|head| &head[index][..]).collect();
            tensor(all.concat(), shape(like))
        };
        [part(0, q), part(1, k), part(2, v)]
    }
}

fn shape(x: &FlexTensor) -> [usize; 4] {
    let shape = x.layout().shape();
    [shape[0], shape[1], shape[2], shape[3]]
}

impl Op<3> for Attention {
    /// Queries, keys, values, and the softmax if it is not too large.
    type Kept = ([FlexTensor; 3], Option<FlexTensor>);

    fn forward(&self, inputs: [FlexTensor; 3]) -> (FlexTensor, Self::Kept) {
        let [q, k, v] = &inputs;
        let sizes = Sizes::of(&self.sight, q, k);
        if sizes.scores() > self.most || self.cap.is_some() {
            let out = self.tiled(&sizes, &inputs);
            return (out, (inputs, None));
        }
        let mut p = product(q, &transposed(k));
        let scores = p.storage_mut::<f32>().par_chunks_mut(sizes.block());
        let each = scores.enumerate();
        each.for_each(|(block, scores)| softmax(scores, &sizes.whole(block)));
        (product(&p, v), (inputs, Some(p)))
    }

    fn backward(
        &self,
        (inputs, p): Self::Kept,
        up: FlexTensor,
        _: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let [q, k, v] = &inputs;
        let sizes = Sizes::of(&self.sight, q, k);
        let Some(p) = p else {
            return self.tiled_back(&sizes, &inputs, &up).map(Some);
        };
        let by_v = product(&transposed(&p), &up);
        let mut by_scores = product(&up, &transposed(v));
        let derivatives = by_scores.storage_mut::<f32>();
        let derivatives = derivatives.par_chunks_mut(sizes.block());
        let each = derivatives.zip(values(&p).par_chunks(sizes.block()));
        let each = each.enumerate();
        each.for_each(|(block, (derivatives, p))| derive(derivatives, p, &sizes.whole(block)));
        let by_q = product(&by_scores, k);
        let by_k = product(&transposed(&by_scores), q);
        [by_q, by_k, by_v].map(Some)
    }
}

kernel! {
    /// Softmax of what each query sees, in place, and zeros beside it.
    fn softmax<'a>(scores: &'a mut [f32], lines: &'a Lines<'a>) {
        for (line, scores) in scores.chunks_exact_mut(lines.keys.len()).enumerate() {
            let range = lines.seen(line);
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
    fn derive<'a>(dp: &'a mut [f32], p: &'a [f32], lines: &'a Lines<'a>) {
        let keys = lines.keys.len();
        let rows = dp.chunks_exact_mut(keys).zip(p.chunks_exact(keys));
        for (line, (dp, p)) in rows.enumerate() {
            let range = lines.seen(line);
            dp[..range.start].fill(0.0);
            dp[range.end..].fill(0.0);
            let (seen, p) = (&mut dp[range.clone()], &p[range]);
            seen.iter_mut().zip(p).for_each(|(dp, p)| *dp *= p);
            let shared = join(0.0, seen, |a, b| a + b);
            seen.iter_mut().zip(p).for_each(|(dp, p)| *dp -= p * shared);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use std::sync::Arc;

    #[test]
    fn tiles_give_what_all_scores_together_give() {
        let device = Device::flex().autodiff();
        let (groups, queries) = (2, TILE + 44);
        let leaf = |seed: usize, rows: usize| {
            let values =
                (0..2 * 2 * rows * 4).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 9.0 - 1.2);
            let data = TensorData::new(values.collect::<Vec<f32>>(), [2, 2, rows, 4]);
            Tensor::<4>::from_data(data, &device).require_grad()
        };
        let documents: Vec<u32> = (0..2 * queries)
            .map(|at| if at % queries < 290 { 0 } else { 290 })
            .collect();
        for (window, starts) in [
            (None, None),
            (Some(100), None),
            (None, Some(Arc::from(documents))),
        ] {
            let sight = Sight {
                before: 0,
                window,
                starts,
            };
            let run = |most: usize| {
                let op = Attention {
                    most,
                    ..Attention::new(&sight)
                };
                let leaves = [
                    leaf(1, groups * queries),
                    leaf(2, queries),
                    leaf(3, queries),
                ];
                let inputs = leaves.each_ref().map(|x| Input::of(x).unwrap());
                let out: Tensor<4> = apply(op, inputs);
                let weight = leaf(4, groups * queries).inner();
                let weight = Tensor::from_inner(weight);
                let gradients = (out.clone() * weight).sum().backward();
                let found = leaves.map(|x| x.grad(&gradients).unwrap());
                (out.inner(), found)
            };
            let ((whole, by), (tiled, by_tiles)) = (run(usize::MAX), run(0));
            let gap = |a: Tensor<4>, b: Tensor<4>| (a - b).abs().max().into_scalar::<f32>();
            assert!(gap(whole, tiled) < 1e-5);
            for (a, b) in by.into_iter().zip(by_tiles) {
                let apart = gap(a, b);
                assert!(apart < 1e-4, "{apart}");
            }
        }
    }
}
