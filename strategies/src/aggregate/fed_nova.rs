//! Aggregation rule `fed-nova`: contributions divided by their inner steps. Fast peers do not pull the result
//! towards their own optimum.

use super::kind::{AggregationSpec, Nature};
use super::{Aggregator, Input};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "fed-nova",
    summary: "the mean of deltas divided by their inner steps, times the mean number of these",
    equation: "v = t_eff (1/n) sum_k x_k / t_k, t_k inner steps, t_eff = (1/n) sum_k t_k",
    source: "Wang et al., NeurIPS 2020",
    parameters: &[],
    nature: Nature::Steps,
    coordinate_wise: false,
    contributions: |_| 1,
    build: |_| Some(Box::new(FedNova)),
};

/// Normalized averaging.
///
/// ```text
/// out = t_eff (1/n) sum_k x_k / t_k,   t_eff = (1/n) sum_k t_k
/// ```
///
/// x_k: the delta of a member after t_k inner steps; t_k: its weight in this plan, a count of inner steps. All
/// members' objectives count alike, so the fixed point is the minimum of their mean. A mean by samples or by
/// peers has another one where counts differ: there a member with twice the inner steps counts twice. The
/// paper's `||a_k||_1` is t_k for SGD without momentum; for other inner optimizers the count stands for it.
/// Special case: with equal counts it is the plain mean. Summed in f32 in `PeerId` order.
///
/// Source: Wang, Liu, Liang, Joshi and Poor, "Tackling the objective inconsistency problem in heterogeneous
/// federated optimization" (NeurIPS 2020), equation 6 (number not verified).
struct FedNova;

impl Aggregator for FedNova {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        out.fill(0.0);
        let count = inputs.len() as f64;
        let total: f64 = inputs.iter().map(|(_, steps)| f64::from(*steps)).sum();
        for (values, steps) in inputs {
            let share = (total / (count * count * f64::from(*steps))) as f32;
            for (out, value) in out.iter_mut().zip(&values[..]) {
                *out += share * value;
            }
        }
    }
}
