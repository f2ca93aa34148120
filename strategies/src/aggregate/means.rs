//! Aggregation rules `weighted-mean`, `norm-clip` and `fed-nova`: the mean by weight, that of inputs whose norms are
//! limited, and that of contributions divided by their inner steps: fast peers do not pull the result towards their
//! own optimum.

use super::Input;
use super::kernels::{norm_squared, weighted_sum};
use super::kind::{AggregationSpec, Nature, RADIUS};

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
    nature: Nature::Mean,
    ..AggregationSpec::of(|_| None)
};

/// `out = sum_k share_k x_k min(1, bound / ||x_k||)`, `share_k = a_k / sum_j a_j`.
///
/// The norm of the result is at most the bound, and liars with a share alpha of the weight move it
/// by at most `2 alpha bound`: a bound on harm, not a filter. It needs the norms of whole inputs;
/// no state. Source: Sun et al., "Can you really backdoor federated learning?" (2019), section 4
/// (norm thresholding). Special case: a bound beyond all norms is the weighted mean.
pub(super) const NORM_CLIP: AggregationSpec = AggregationSpec {
    name: "norm-clip",
    summary: "the weighted mean with limited norms",
    equation: "v = sum_k w_k x_k min(1, radius / ||x_k||) / sum_k w_k",
    source: "Sun et al., arXiv 1911.07963",
    parameters: &[RADIUS],
    ..AggregationSpec::of(|kind| {
        let bound = kind.number(RADIUS.name);
        Some(Box::new(move |inputs: &[Input<'_>], out: &mut [f32]| {
            let total: f64 = inputs.iter().map(|(_, weight)| f64::from(*weight)).sum();
            let clipped = inputs.iter().map(|(values, weight)| {
                let cut = (bound / norm_squared(values).sqrt()).min(1.0);
                (*values, (f64::from(*weight) / total * cut) as f32)
            });
            weighted_sum(clipped, out);
        }))
    })
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
pub(super) const FED_NOVA: AggregationSpec = AggregationSpec {
    name: "fed-nova",
    summary: "the mean of deltas divided by their inner steps, times the mean number of these",
    equation: "v = t_eff (1/n) sum_k x_k / t_k, t_k inner steps, t_eff = (1/n) sum_k t_k",
    source: "Wang et al., NeurIPS 2020",
    nature: Nature::Steps,
    ..AggregationSpec::of(|_| {
        Some(Box::new(|inputs: &[Input<'_>], out: &mut [f32]| {
            out.fill(0.0);
            let count = inputs.len() as f64;
            let total: f64 = inputs.iter().map(|(_, steps)| f64::from(*steps)).sum();
            for (values, steps) in inputs {
                let share = (total / (count * count * f64::from(*steps))) as f32;
                for (out, value) in out.iter_mut().zip(&values[..]) {
                    *out += share * value;
                }
            }
        }))
    })
};
