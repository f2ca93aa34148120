//! Aggregation rule `clipped-gossip`: partners move a peer's parameters by a limited distance.

use super::Input;
use super::kernels::distance_squared;
use super::kind::{AggregationSpec, LIARS, Nature};

/// The first input is this peer's own, x, with weight W_ii; the others are its d partners'.
///
/// ```text
/// out = x + sum_j W_ij (x_j - x) min(1, tau / ||x_j - x||),   W_ij = w_j / (w + sum_l w_l)
/// tau = the distance of the (d - f)-th nearest partner
/// ```
///
/// At most f partners lie, so at least one honest partner is as far as tau: a liar moves this peer no
/// farther than honest partners do. With f or fewer partners, tau is zero and nothing moves.
/// **Source:** He, Karimireddy and Jaggi, "Byzantine-robust decentralized learning via
/// ClippedGossip" (2022), equation (ClippedGossip) and the adaptive choice of tau in section 4; there
/// tau goes by the squared weights of the partners, here by their number. Special cases: f = 0 clips
/// nothing, and the result is the weighted mean.
pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "clipped-gossip",
    summary: "partners that are pulled move a peer by a limited distance",
    equation: "x' = x + sum_j W_ij (x_j - x) min(1, tau / ||x_j - x||), tau the (d - f)-th least distance of d partners",
    source: "He et al., arXiv 2202.01545",
    parameters: &[LIARS],
    nature: Nature::Partners,
    ..AggregationSpec::of(|kind| {
        let faulty = kind.faulty();
        Some(Box::new(move |inputs: &[Input<'_>], out: &mut [f32]| {
            let Some(((own, _), partners)) = inputs.split_first() else {
                return out.fill(0.0);
            };
            let own = &own[..out.len()];
            out.copy_from_slice(own);
            let total: f32 = inputs.iter().map(|(_, weight)| weight).sum();
            let lengths: Vec<f64> = partners
                .iter()
                .map(|(values, _)| distance_squared(&values[..own.len()], own).sqrt())
                .collect();
            let mut sorted = lengths.clone();
            sorted.sort_by(f64::total_cmp);
            let last = partners.len().checked_sub(faulty + 1);
            let radius = last.map_or(0.0, |last| sorted[last]);
            for ((values, weight), length) in partners.iter().zip(lengths) {
                let clip = if length > radius {
                    radius / length
                } else {
                    1.0
                };
                let share = clip as f32 * weight / total;
                for ((out, own), value) in out.iter_mut().zip(own).zip(*values) {
                    *out += share * (value - own);
                }
            }
        }))
    })
};
