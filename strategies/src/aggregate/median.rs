//! Aggregation rule `median`: the median of each coordinate.

use super::kernels::Network;
use super::kind::{AggregationSpec, Nature};
use super::{Aggregator, Input};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "median",
    summary: "the median of each coordinate",
    equation: "v_d = median of x_kd over k",
    source: "Yin et al., ICML 2018",
    parameters: &[],
    nature: Nature::Robust,
    coordinate_wise: true,
    contributions: |_| 1,
    build: |_| Some(Box::new(Median::default())),
};

/// `out_d = median_k x_kd`; the mean of the two middle values for even n.
///
/// With f < n/2 liars every coordinate lies between the smallest and the largest honest value; for
/// honest inputs of variance sigma^2 the error is `O(sigma f / n + sigma / sqrt(n))` for each
/// coordinate. Weights are not used: a liar would claim the largest. Coordinate-wise, no state;
/// sorts by a fixed network, `O(n log^2 n)` comparisons. On skewed data it is biased even without
/// liars. Source: Yin et al., "Byzantine-robust distributed learning: towards optimal statistical
/// rates" (ICML 2018), algorithm 1, option I. One or two inputs: their mean.
#[derive(Clone, Debug, Default)]
pub struct Median {
    network: Network,
}

impl Aggregator for Median {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let values: Vec<&[f32]> = inputs.iter().map(|(values, _)| *values).collect();
        let (low, high) = ((values.len().max(1) - 1) / 2, values.len() / 2);
        if values.is_empty() {
            return out.fill(0.0);
        }
        self.network.sorted(&values, out.len(), |range, columns| {
            let middle = columns[low].iter().zip(&columns[high]);
            for (o, (a, b)) in out[range].iter_mut().zip(middle) {
                *o = 0.5 * a + 0.5 * b;
            }
        });
    }
}
