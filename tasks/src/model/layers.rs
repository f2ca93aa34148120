//! Layers that several models have.

use crate::fused;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

/// Causal attention, `softmax(q k^T) v`, in which row i of each `context` rows sees positions up to i.
///
/// q (scaled): `[batch, heads, groups * context, d]`; k, v: `[batch, heads, context, d]`.
pub(super) fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
    fused::attention(&q, &k, &v).unwrap_or_else(|| recorded(q, k, v))
}

/// The same by burn's operations.
fn recorded(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
    let ([_, _, rows, _], [_, _, context, _]) = (q.dims(), k.dims());
    let later = Tensor::<2>::full([context, context], -1e9, &q.device()).triu(1);
    let mask = later.repeat_dim(0, rows / context).unsqueeze();
    softmax(q.matmul(k.swap_dims(2, 3)) + mask, 3).matmul(v)
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
    /// Keeps a norm finite where all values of a group are equal.
    pub(super) eps: f64,
}

impl Norm {
    /// x: `[samples, channels, ..]`.
    pub(super) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let (weight, bias) = (self.weight.val(), self.bias.as_ref().map(Param::val));
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
    use burn::tensor::{Device, TensorData};

    fn leaf(seed: usize, rows: usize, device: &Device) -> Tensor<4> {
        let values = (0..4 * rows * 3).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 9.0 - 1.2);
        let data = TensorData::new(values.collect::<Vec<f32>>(), [2, 2, rows, 3]);
        Tensor::from_data(data, device).require_grad()
    }

    #[test]
    fn both_ways_agree() {
        let device = Device::flex().autodiff();
        for groups in [1, 3] {
            let leaves =
                || [(1, groups * 5), (2, 5), (3, 5)].map(|(seed, rows)| leaf(seed, rows, &device));
            let weight = leaf(4, groups * 5, &device).detach();
            let (ours, theirs) = (leaves(), leaves());
            let [q, k, v] = ours.clone();
            let out = attention(q, k, v);
            let [q, k, v] = theirs.clone();
            let reference = recorded(q, k, v);
            close(&out.clone().inner(), &reference.clone().inner());
            let a = (out * weight.clone()).sum().backward();
            let b = (reference * weight).sum().backward();
            for (x, y) in ours.iter().zip(&theirs) {
                close(&x.grad(&a).unwrap(), &y.grad(&b).unwrap());
            }
        }
    }

    fn close(a: &Tensor<4>, b: &Tensor<4>) {
        let gap = (a.clone() - b.clone()).abs().max().into_scalar::<f32>();
        assert!(gap < 1e-5, "{gap}");
    }
}
