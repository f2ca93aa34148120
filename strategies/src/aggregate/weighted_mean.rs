//! Aggregation rule `weighted-mean`: the mean by weight, summed in a fixed order.

use super::kind::{AggregationSpec, Nature};
use murmurate_protocol::PeerId;

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "weighted-mean",
    summary: "the mean by samples, summed in PeerId order",
    equation: "v = sum_k w_k x_k / sum_k w_k",
    source: "McMahan et al., AISTATS 2017",
    parameters: &[],
    nature: Nature::Mean,
    contributions: |_| 1,
    build: |_| None,
};

/// Turns the weights of a combination into f32 shares that sum to one (up to rounding):
///
/// ```text
/// share_k = a_k / (keep + sum_k a_k),   kept = keep / (keep + sum_k a_k)
/// ```
///
/// Quotients are taken in f64 and rounded once. Weights may be negative (a contribution that is
/// removed again). `None` if the sum is not a positive number.
pub fn shares(keep: f64, weights: impl Iterator<Item = f64> + Clone) -> Option<(f32, Vec<f32>)> {
    let total = keep + weights.clone().sum::<f64>();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    Some((
        (keep / total) as f32,
        weights.map(|a| (a / total) as f32).collect(),
    ))
}

/// The weighted mean of decoded contributions, summed in `PeerId` order.
///
/// ```text
/// out = sum_k share_k x_k,   share_k = a_k / sum_k a_k,   k in ascending PeerId order
/// ```
///
/// Shapes: each x_k and `out`: `[len]`, f32; a_k: samples, above zero. f32 addition is not
/// associative: the fixed order makes peers that reduce the same set hold the same bits. The
/// Executor does the same through [`Codec::decode_add`](crate::compress::Codec::decode_add), one
/// contribution at a time, without the decoded copies; this is the reference it is tested against.
/// Returns false for an empty set, which has no mean. Source: McMahan et al.,
/// "Communication-efficient learning of deep networks from decentralized data" (AISTATS 2017),
/// algorithm 1. Special case: equal weights are the plain mean.
///
/// # Panics
/// If a contribution has another length than `out`.
pub fn weighted_mean(contributions: &[(PeerId, f64, &[f32])], out: &mut [f32]) -> bool {
    let mut ordered: Vec<_> = contributions.iter().collect();
    ordered.sort_by_key(|(peer, _, _)| *peer);
    let Some((_, shares)) = shares(0.0, ordered.iter().map(|(_, weight, _)| *weight)) else {
        return false;
    };
    out.fill(0.0);
    for ((_, _, values), share) in ordered.into_iter().zip(shares) {
        assert_eq!(values.len(), out.len());
        for (o, x) in out.iter_mut().zip(*values) {
            *o += share * x;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    #[test]
    fn the_mean_follows_its_equation() {
        let values: Vec<Vec<f32>> = (0..5)
            .map(|k| {
                (0..9)
                    .map(|i| ((k * 5 + i * 3) % 11) as f32 - 4.0)
                    .collect()
            })
            .collect();
        let weights = [320.0, 64.0, 1.0, 128.0, 64.0];
        let inputs: Vec<_> = (0..5)
            .map(|k| (peer(k as u8), weights[k], values[k].as_slice()))
            .collect();
        let mut out = [9.0; 9];
        assert!(weighted_mean(&inputs, &mut out));
        for (i, o) in out.iter().enumerate() {
            let sum: f64 = (0..5).map(|k| weights[k] * f64::from(values[k][i])).sum();
            let expected = sum / weights.iter().sum::<f64>();
            assert!(
                (f64::from(*o) - expected).abs() < 1e-5,
                "{o} is not {expected}"
            );
        }
    }

    #[test]
    fn the_order_given_does_not_change_a_bit() {
        let values = [[0.1f32, 1e8], [0.2, -1e8], [0.3, 0.7]];
        let input = |k: usize| (peer(k as u8), 1.0, values[k].as_slice());
        let (mut forth, mut back) = ([0.0; 2], [0.0; 2]);
        assert!(weighted_mean(&[input(0), input(1), input(2)], &mut forth));
        assert!(weighted_mean(&[input(2), input(0), input(1)], &mut back));
        assert_eq!(forth.map(f32::to_bits), back.map(f32::to_bits));
    }

    #[test]
    fn without_weight_there_is_no_mean() {
        assert!(!weighted_mean(&[], &mut []));
        assert_eq!(shares(1.0, [-1.0].into_iter()), None);
        assert_eq!(shares(1.0, [f64::NAN].into_iter()), None);
        assert_eq!(
            shares(1.0, [2.0, 1.0].into_iter()),
            Some((0.25, vec![0.5, 0.25]))
        );
    }
}
