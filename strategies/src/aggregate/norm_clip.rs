//! Aggregation rule `norm-clip`: the weighted mean of inputs whose norms are limited.

use super::kernels::{norm_squared, weighted_sum};
use super::kind::{AggregationSpec, Nature, RADIUS};
use super::{Aggregator, Input, Scope};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "norm-clip",
    summary: "the weighted mean with limited norms",
    equation: "v = sum_k w_k x_k min(1, radius / ||x_k||) / sum_k w_k",
    source: "Sun et al., arXiv 1911.07963",
    parameters: &[RADIUS],
    nature: Nature::Robust,
    contributions: |_| 1,
    build: |kind| Some(Box::new(NormClip::new(kind.number(RADIUS.name)))),
};

/// `out = sum_k share_k x_k min(1, bound / ||x_k||)`, `share_k = a_k / sum_j a_j`.
///
/// The norm of the result is at most the bound, and liars with a share alpha of the weight move it
/// by at most `2 alpha bound`: a bound on harm, not a filter. It needs the norms of whole inputs;
/// no state. Source: Sun et al., "Can you really backdoor federated learning?" (2019), section 4
/// (norm thresholding). Special case: a bound beyond all norms is the weighted mean.
#[derive(Clone, Copy, Debug)]
pub struct NormClip {
    bound: f64,
}

impl NormClip {
    /// `bound` is the largest norm, above zero.
    pub const fn new(bound: f64) -> Self {
        Self { bound }
    }
}

impl Aggregator for NormClip {
    fn scope(&self) -> Scope {
        Scope::Whole
    }

    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let total: f64 = inputs.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let clipped = inputs.iter().map(|(values, weight)| {
            let cut = (self.bound / norm_squared(values).sqrt()).min(1.0);
            (*values, (f64::from(*weight) / total * cut) as f32)
        });
        weighted_sum(clipped, out);
    }
}
