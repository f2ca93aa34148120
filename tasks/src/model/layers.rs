//! Layers that several models have.

use crate::fused;
use burn::module::{Module, Param};
use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use std::ops::Range;
use std::sync::Arc;

/// Which keys the queries of causal attention see: those up to their own position, or fewer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    /// Keys in front of the first query's, which a cache has.
    pub(crate) before: usize,
    /// Positions that each one sees, itself included; all if there is none.
    pub(crate) window: Option<usize>,
    /// Position at which the document of each query begins, `[batch * context]`; all rows are one document if
    /// there is none.
    pub(crate) starts: Option<Arc<[u32]>>,
}

impl Sight {
    /// The keys that a query sees, by its place among the queries of a row.
    pub(crate) fn of(&self, batch: usize, query: usize, queries: usize) -> Range<usize> {
        let end = self.before + query + 1;
        let first = self
            .starts
            .as_ref()
            .map_or(0, |starts| starts[batch * queries + query]);
        let near = self.window.map_or(0, |window| end.saturating_sub(window));
        near.max(first as usize)..end
    }
}

/// Causal attention, `softmax(q k^T) v`, in which each query sees what [`Sight`] says.
///
/// q (scaled): `[batch, heads, groups * queries, d]`; k, v: `[batch, heads, keys, d]`. With a cap, scores are
/// `cap tanh(score / cap)`.
pub(super) fn attention(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    sight: &Sight,
    cap: Option<f64>,
) -> Tensor<4> {
    fused::attention(&q, &k, &v, sight, cap).unwrap_or_else(|| recorded(q, k, v, sight, cap))
}

/// The same by burn's operations.
fn recorded(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    sight: &Sight,
    cap: Option<f64>,
) -> Tensor<4> {
    let ([batch, _, rows, _], [_, _, keys, _]) = (q.dims(), k.dims());
    let queries = keys - sight.before;
    let mut mask = vec![-1e9_f32; batch * queries * keys];
    for (row, mask) in mask.chunks_exact_mut(keys).enumerate() {
        mask[sight.of(row / queries, row % queries, queries)].fill(0.0);
    }
    let mask = TensorData::new(mask, [batch, 1, queries, keys]);
    let mask = Tensor::from_data(mask, &q.device()).repeat_dim(2, rows / queries);
    let scores = capped(q.matmul(k.swap_dims(2, 3)), cap);
    softmax(scores + mask, 3).matmul(v)
}

/// `cap tanh(x / cap)`, or x without a cap.
///
/// **Source:** Gemma 2: Improving open language models at a practical size, 2024, section 2.
pub(crate) fn capped<const D: usize>(x: Tensor<D>, cap: Option<f64>) -> Tensor<D> {
    match cap {
        Some(cap) => (x / cap).tanh() * cap,
        None => x,
    }
}

/// `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias` of each group of channels of a sample; without a bias
/// `x / sqrt(mean(x^2) + eps) * weight`.
///
/// **Source:** Ba et al., Layer normalization, 2016, eq. 4 (one group of a row); Wu and He, Group normalization, 2018, eq. 1
/// to 7; Zhang and Sennrich, Root mean square layer normalization, 2019, eq. 4.
#[derive(Module, Debug)]
pub(super) struct Norm {
    pub(super) weight: Param<Tensor<1>>,
    pub(super) bias: Option<Param<Tensor<1>>>,
    pub(super) groups: usize,
    /// Added to the weight: 1 where it is kept as the distance from 1 (Gemma).
    pub(super) offset: f32,
    /// Keeps a norm finite where all values of a group are equal.
    pub(super) eps: f64,
}

impl Norm {
    /// x: `[samples, channels, ..]`.
    pub(super) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let (mut weight, bias) = (self.weight.val(), self.bias.as_ref().map(Param::val));
        if self.offset != 0.0 {
            weight = weight + self.offset;
        }
        let fused = fused::norm(&x, &weight, bias.as_ref(), self.groups, self.eps);
        fused.unwrap_or_else(|| {
            let dims = x.dims();
            let (mut wide, size) = ([1; D], dims.iter().skip(1).product::<usize>());
            wide[1] = dims[1];
            let x = x.reshape([dims[0], self.groups, size / self.groups]);
            let x = match bias {
                Some(_) => x.clone() - x.mean_dim(2),
                None => x,
            };
            let scale = (x.clone().square().mean_dim(2) + self.eps).sqrt();
            let x = (x / scale).reshape(dims) * weight.reshape(wide);
            bias.map_or(x.clone(), |bias| x + bias.reshape(wide))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn leaf(seed: usize, rows: usize, device: &Device) -> Tensor<4> {
        let values = (0..4 * rows * 3).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 9.0 - 1.2);
        let data = TensorData::new(values.collect::<Vec<f32>>(), [2, 2, rows, 3]);
        Tensor::from_data(data, device).require_grad()
    }

    #[test]
    fn both_ways_agree() {
        let device = Device::flex().autodiff();
        let starts = |all: [u32; 10]| Some(Arc::from(all));
        let documents = starts([0, 0, 2, 2, 2, 0, 0, 0, 0, 4]);
        for (groups, window, starts, cap) in [
            (1, None, None, None),
            (3, None, None, None),
            (3, Some(2), None, None),
            (1, None, documents.clone(), None),
            (3, Some(2), documents, None),
            (3, Some(2), None, Some(0.8)),
        ] {
            let sight = Sight {
                before: 0,
                window,
                starts,
            };
            let leaves =
                || [(1, groups * 5), (2, 5), (3, 5)].map(|(seed, rows)| leaf(seed, rows, &device));
            let weight = leaf(4, groups * 5, &device).detach();
            let (ours, theirs) = (leaves(), leaves());
            let [q, k, v] = ours.clone();
            let out = attention(q, k, v, &sight, cap);
            let [q, k, v] = theirs.clone();
            let reference = recorded(q, k, v, &sight, cap);
            close(&out.clone().inner(), &reference.clone().inner());
            let a = (out * weight.clone()).sum().backward();
            let b = (reference * weight).sum().backward();
            for (x, y) in ours.iter().zip(&theirs) {
                close(&x.grad(&a).unwrap(), &y.grad(&b).unwrap());
            }
        }
    }

    #[test]
    fn a_document_is_as_if_it_were_alone() {
        let device = Device::flex().autodiff();
        let all = [1, 2, 3].map(|seed| leaf(seed, 5, &device).inner());
        let sight = Sight {
            starts: Some(Arc::from([0, 0, 2, 2, 2, 0, 0, 2, 2, 2])),
            ..Sight::default()
        };
        let [q, k, v] = all.clone();
        let packed = attention(q, k, v, &sight, None);
        let [q, k, v] = all.map(|x| x.narrow(2, 2, 3));
        let alone = attention(q, k, v, &Sight::default(), None);
        close(&packed.narrow(2, 2, 3), &alone);
    }

    #[test]
    fn queries_behind_a_cache_are_those_of_the_whole() {
        let device = Device::flex().autodiff();
        let [q, k, v] = [1, 2, 3].map(|seed| leaf(seed, 5, &device).inner());
        for window in [None, Some(2)] {
            let sight = |before| Sight {
                before,
                window,
                starts: None,
            };
            let whole = attention(q.clone(), k.clone(), v.clone(), &sight(0), None);
            let last = q.clone().narrow(2, 3, 2);
            let last = attention(last, k.clone(), v.clone(), &sight(3), None);
            close(&whole.narrow(2, 3, 2), &last);
        }
    }

    fn close(a: &Tensor<4>, b: &Tensor<4>) {
        let gap = (a.clone() - b.clone()).abs().max().into_scalar::<f32>();
        assert!(gap < 1e-5, "{gap}");
    }
}
