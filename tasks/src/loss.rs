//! The cross-entropy of a classifier, fast on a processor: one fused softmax that is not recorded
//! and one recorded product, instead of the seven recorded operations of a log-softmax.

use crate::fused;
use crate::model::Output;
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};
use std::sync::Arc;

/// Smallest probability, which limits losses to 80 nats.
const PROBABILITY_MIN: f32 = 1.8e-35;

/// The loss of that probability.
pub(crate) const NATS_MAX: f64 = 80.0;

/// Mean cross-entropy in nats, differentiable in the logits.
///
/// `loss = -1/n sum_i log p_i[y_i]`, `p = softmax(logits)`; its gradient `(p - onehot(y)) / n` is
/// written down rather than derived: the result is `value + (s - s.detach())`, `s = sum(logits *
/// gradient)`.
///
/// logits: `[n, classes]`; targets: `[n]`, each below `classes`; result: `[1]`.
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [n, _] = logits.dims();
    let targets = targets.reshape([n, 1]).inner();
    let p = softmax(logits.clone().inner(), 1);
    let value = mean_loss(p.clone().gather(1, targets.clone()));
    let hit = Tensor::full([n, 1], -1.0, &p.device());
    let gradient = p.scatter(1, targets, hit, IndexingUpdateOp::Add) / n as f32;
    let surrogate = (logits * Tensor::from_inner(gradient)).sum();
    let rest = surrogate.clone().detach();
    surrogate - rest + Tensor::from_inner(value)
}

/// The mean cross-entropy with the target `(1 - s) onehot(y) + s / classes`, differentiable in the
/// logits. `s = 0` is [`cross_entropy`].
///
/// logits: `[n, classes]`; targets: `[n]`, each below `classes`; smoothing: in `[0, 1)`; result:
/// `[1]`.
///
/// **Source:** Szegedy et al., Rethinking the inception architecture, 2016, section 7.
pub fn smooth_cross_entropy(
    logits: Tensor<2>,
    targets: Tensor<1, Int>,
    smoothing: f64,
) -> Tensor<1> {
    if smoothing == 0.0 {
        return cross_entropy(logits, targets);
    }
    let even = -log_softmax(logits.clone(), 1).mean();
    cross_entropy(logits, targets) * (1.0 - smoothing) + even * smoothing
}

/// The mean cross-entropy of a language model's last layer on activations, as [`smooth_cross_entropy`] of its
/// logits.
///
/// x: `[rows, width]`; targets: one for each row, each below the vocabulary.
pub(crate) fn of_output(
    x: &Tensor<2>,
    output: &Output,
    targets: &Arc<[u32]>,
    smoothing: f64,
) -> Tensor<1> {
    let fused = fused::output_loss(x, &output.weight, output.cap, targets.clone(), smoothing);
    fused.unwrap_or_else(|| {
        let index: Vec<i32> = targets.iter().map(|&target| target as i32).collect();
        let index = TensorData::new(index, [targets.len()]);
        let index = Tensor::from_data(index, &x.device());
        smooth_cross_entropy(output.logits(x), index, smoothing)
    })
}

/// The sum of the cross-entropies in nats, not bounded.
///
/// logits: `[n, classes]`; targets: n of them, each below `classes`.
pub(crate) fn sum_of(logits: Tensor<2>, targets: &[u32]) -> f64 {
    let index: Vec<i32> = targets.iter().map(|&target| target as i32).collect();
    let index = TensorData::new(index, [targets.len(), 1]);
    let index = Tensor::<2, Int>::from_data(index, &logits.device());
    let found = log_softmax(logits, 1).gather(1, index).into_data();
    -found.iter::<f64>().sum::<f64>()
}

/// The sum of the cross-entropies in nats, and how many logits are largest at their target.
///
/// logits: `[n, classes]`; targets: `[n]`.
pub fn score(logits: Tensor<2>, targets: Tensor<1, Int>) -> (f64, u64) {
    let [n, _] = logits.dims();
    let targets = targets.reshape([n, 1]);
    let right = logits.clone().argmax(1).equal(targets.clone()).int().sum();
    let loss = mean_loss(softmax(logits, 1).gather(1, targets)) * n as f32;
    (
        f64::from(loss.into_scalar::<f32>()),
        right.into_scalar::<i64>() as u64,
    )
}

/// How many targets are among the five largest logits of their row. Equal logits count for the target.
///
/// logits: `[n, classes]`; targets: `[n]`.
pub fn top_5(logits: Tensor<2>, targets: Tensor<1, Int>) -> u64 {
    let [n, classes] = logits.dims();
    let own = logits.clone().gather(1, targets.reshape([n, 1]));
    let above = logits.greater(own.expand([n, classes])).int().sum_dim(1);
    above.lower_elem(5).int().sum().into_scalar::<i64>() as u64
}

fn mean_loss(p: Tensor<2>) -> Tensor<1> {
    p.clamp_min(PROBABILITY_MIN).log().mean().neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn value_and_gradient_are_those_of_log_softmax() {
        let device = Device::flex().autodiff();
        let values: Vec<f32> = (0..21)
            .map(|i| ((i * 37 % 19) as f32 - 9.0) / 3.0)
            .collect();
        let leaf = || {
            let data = TensorData::new(values.clone(), [3, 7]);
            Tensor::<2>::from_data(data, &device).require_grad()
        };
        let targets = Tensor::<1, Int>::from_data(TensorData::new(vec![2_i32, 0, 6], [3]), &device);
        let (ours, theirs) = (leaf(), leaf());
        let loss = cross_entropy(ours.clone(), targets.clone());
        let index = targets.reshape([3, 1]);
        let reference = log_softmax(theirs.clone(), 1).gather(1, index).mean().neg();
        let (a, b) = (
            loss.clone().into_scalar::<f32>(),
            reference.clone().into_scalar::<f32>(),
        );
        assert!((a - b).abs() < 1e-5, "{a} {b}");
        let ours = ours.grad(&loss.backward()).unwrap().into_data();
        let theirs = theirs.grad(&reference.backward()).unwrap().into_data();
        let pairs = ours.iter::<f32>().zip(theirs.iter::<f32>());
        for (x, y) in pairs {
            assert!((x - y).abs() < 1e-6, "{x} {y}");
        }
    }

    #[test]
    fn the_five_largest_logits_of_a_row_count() {
        let device = Device::flex();
        let row: Vec<f32> = (0..12).map(|class| (class * 5 % 12) as f32).collect();
        // Class 7 has the largest logit, then 2, 9, 4, 11, and 6.
        let targets = [7, 2, 9, 4, 11, 6, 0];
        let logits = row.repeat(targets.len());
        let logits = Tensor::<2>::from_data(TensorData::new(logits, [7, 12]), &device);
        let ranks = |n: usize| {
            let targets =
                Tensor::<1, Int>::from_data(TensorData::new(targets[..n].to_vec(), [n]), &device);
            top_5(logits.clone().narrow(0, 0, n), targets)
        };
        assert_eq!((ranks(1), ranks(5), ranks(6), ranks(7)), (1, 5, 5, 5));
        let even = Tensor::<2>::zeros([1, 12], &device);
        assert_eq!(top_5(even, Tensor::<1, Int>::from_data([11], &device)), 1);
    }

    #[test]
    fn smoothing_moves_a_share_of_the_target_to_all_classes() {
        let device = Device::flex();
        let logits = || Tensor::<2>::from_data([[1.0, 2.0, 4.0]], &device);
        let targets = || Tensor::<1, Int>::from_data([1], &device);
        let found = smooth_cross_entropy(logits(), targets(), 0.3).into_scalar::<f32>();
        let logs: Vec<f32> = log_softmax(logits(), 1).into_data().iter::<f32>().collect();
        let even = logs.iter().sum::<f32>() / 3.0;
        let expected = -(0.7 * logs[1] + 0.3 * even);
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}
