//! Aggregation rules `weighted-mean` and `norm-clip`: the mean by weight, and that of inputs whose norms are
//! limited.

use super::kernels::{norm_squared, weighted_sum};
use super::kind::{AggregationSpec, Nature, RADIUS};
use super::{Aggregator, Input};

/// The weighted mean of decoded contributions, summed in `PeerId` order.
///
/// ```text
/// out = sum_k share_k x_k,   share_k = a_k / sum_k a_k,   k in ascending PeerId order
/// ```
///
/// Shapes: each x_k and `out`: `[len]`, f32; a_k: samples, above zero. f32 addition is not
/// associative: the fixed order makes peers that reduce the same set hold the same bits. The
/// Executor takes it by [`Codec::decode_add`](crate::compress::Codec::decode_add), one
/// contribution at a time, without decoded copies. Source: McMahan et al.,
/// "Communication-efficient learning of deep networks from decentralized data" (AISTATS 2017),
/// algorithm 1. Special case: equal weights are the plain mean.
pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "weighted-mean",
    summary: "the mean by samples, summed in PeerId order",
    equation: "v = sum_k w_k x_k / sum_k w_k",
    source: "McMahan et al., AISTATS 2017",
    parameters: &[],
    nature: Nature::Mean,
    coordinate_wise: false,
    contributions: |_| 1,
    build: |_| None,
};

pub(super) const NORM_CLIP: AggregationSpec = AggregationSpec {
    name: "norm-clip",
    summary: "the weighted mean with limited norms",
    equation: "v = sum_k w_k x_k min(1, radius / ||x_k||) / sum_k w_k",
    source: "Sun et al., arXiv 1911.07963",
    parameters: &[RADIUS],
    nature: Nature::Robust,
    coordinate_wise: false,
    contributions: |_| 1,
    build: |kind| {
        let bound = kind.number(RADIUS.name);
        Some(Box::new(NormClip { bound }))
    },
};

/// `out = sum_k share_k x_k min(1, bound / ||x_k||)`, `share_k = a_k / sum_j a_j`.
///
/// The norm of the result is at most the bound, and liars with a share alpha of the weight move it
/// by at most `2 alpha bound`: a bound on harm, not a filter. It needs the norms of whole inputs;
/// no state. Source: Sun et al., "Can you really backdoor federated learning?" (2019), section 4
/// (norm thresholding). Special case: a bound beyond all norms is the weighted mean.
struct NormClip {
    bound: f64,
}

impl Aggregator for NormClip {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let total: f64 = inputs.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let clipped = inputs.iter().map(|(values, weight)| {
            let cut = (self.bound / norm_squared(values).sqrt()).min(1.0);
            (*values, (f64::from(*weight) / total * cut) as f32)
        });
        weighted_sum(clipped, out);
    }
}
