//! Causal attention that reads its scores four times per inner step instead of a dozen times.

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};

/// Value of a masked score. Its softmax is exactly zero.
const MASKED: f32 = -1e9;

/// Zero where position `row` may see position `column`, `MASKED` where it is later.
pub(super) fn causal_mask(context: usize, device: &Device) -> Tensor<2> {
    let later = Tensor::<2>::full([context, context], MASKED, device);
    later.triu(1)
}

/// Causal attention, `softmax(q k^T + mask) v`, with its gradient written down.
///
/// With `P` the softmax and `dO` the gradient of the result `O`, the gradient of the scores is
/// `P * (dO v^T - rowsum(dO * O))`. It is linear in `dO`, so it is the derivative of
/// `X = (P * S) v - rowsum(P * S) * O` with `P`, `v` and `O` held fixed; the result is
/// `P v + X - X.detach()`. The row sum comes with the product: `(P * S) [v 1]`. What is left for
/// the tape over the scores is one product each way, where a recorded softmax takes a dozen passes.
///
/// q (scaled): `[batch, heads, rows, d]`; k, v: `[batch, heads, context, d]`; mask: `[rows, context]`,
/// off the tape.
///
/// **Source:** the gradient: Dao et al., FlashAttention, 2022, appendix B.2.
pub(super) fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, mask: &Tensor<2>) -> Tensor<4> {
    let scores = q.matmul(k.swap_dims(2, 3));
    let p = softmax(scores.clone().inner() + mask.clone().unsqueeze(), 3);
    if !scores.device().is_autodiff() {
        return p.matmul(v);
    }
    let [batch, heads, context, d] = v.dims();
    let fixed = v.clone().inner();
    let ones = Tensor::ones([batch, heads, context, 1], &fixed.device());
    let joined = Tensor::from_inner(Tensor::cat(vec![fixed, ones], 3));
    let p = Tensor::from_inner(p);
    let out = p.clone().matmul(v);
    let fixed_out = out.clone().detach();
    let product = (scores * p).matmul(joined);
    let sums = product.clone().narrow(3, d, 1);
    let derivative = product.narrow(3, 0, d) - sums * fixed_out;
    let rest = derivative.clone().detach();
    out + (derivative - rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;

    fn leaf(seed: usize, device: &Device) -> Tensor<4> {
        let values = (0..2 * 2 * 5 * 3).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 9.0 - 1.2);
        let data = TensorData::new(values.collect::<Vec<f32>>(), [2, 2, 5, 3]);
        Tensor::from_data(data, device).require_grad()
    }

    #[test]
    fn attention_and_its_gradients_are_those_of_a_recorded_softmax() {
        let device = Device::flex().autodiff();
        let leaves = || [1, 2, 3].map(|seed| leaf(seed, &device));
        let weight = leaf(4, &device).detach();
        let mask = causal_mask(5, &Device::flex());
        let (ours, theirs) = (leaves(), leaves());
        let [q, k, v] = ours.clone();
        let out = attention(q, k, v, &mask);
        let [q, k, v] = theirs.clone();
        let scores = q.matmul(k.swap_dims(2, 3)) + Tensor::from_inner(mask).unsqueeze();
        let reference = softmax(scores, 3).matmul(v);
        close(&out.clone().inner(), &reference.clone().inner());
        let a = (out * weight.clone()).sum().backward();
        let b = (reference * weight).sum().backward();
        for (x, y) in ours.iter().zip(&theirs) {
            close(&x.grad(&a).unwrap(), &y.grad(&b).unwrap());
        }
    }

    fn close(a: &Tensor<4>, b: &Tensor<4>) {
        let gap = (a.clone() - b.clone()).abs().max().into_scalar::<f32>();
        assert!(gap < 1e-5, "{gap}");
    }
}
