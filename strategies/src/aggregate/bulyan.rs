//! Aggregation rule `bulyan`: inputs chosen by Krum, then a trimmed mean of each coordinate.

use super::kernels::{LANES, Network};
use super::kind::{AggregationSpec, LIARS};
use super::krum::{distances, scores};
use super::{Aggregator, Input};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "bulyan",
    summary: "inputs chosen by Krum, then a trimmed mean of each coordinate",
    equation: "choose n - 2 f by Krum, one by one; then by coordinate the mean of the n - 4 f nearest to their median",
    source: "El Mhamdi et al., ICML 2018",
    parameters: &[LIARS],
    contributions: |faulty| 4 * faulty + 3,
    ..AggregationSpec::of(|kind| {
        Some(Box::new(Bulyan {
            faulty: kind.faulty(),
            network: Network::default(),
        }))
    })
};

/// Takes `theta = n - 2 f` inputs by repeated Krum, each time without those already taken. Then,
/// for each coordinate, it takes the mean of the `beta = theta - 2 f` values nearest to the median
/// of the theta.
///
/// With `n >= 4 f + 3` every coordinate is within the spread of the honest values that were taken,
/// measured from their median. So liars cannot hide a large change of one coordinate behind a small
/// norm, as they can with Krum. With fewer inputs, f is the largest number that they allow, `(n -
/// 3) / 4`. Weights are not used. It needs all distances between whole inputs; no state.
///
/// Parameter: `liars`, f, the number of inputs that may be wrong. Source: El Mhamdi, Guerraoui and
/// Rouault, "The hidden vulnerability of distributed learning in Byzantium" (ICML 2018), algorithm
/// 2 of section 4. Special case: f = 0 is the plain mean.
struct Bulyan {
    faulty: usize,
    network: Network,
}

/// The inputs that repeated Krum takes, in their original order.
fn taken(inputs: &[Input<'_>], faulty: usize) -> Vec<usize> {
    let distances = distances(inputs);
    let mut left: Vec<usize> = (0..inputs.len()).collect();
    let mut taken = Vec::new();
    while taken.len() + 2 * faulty < inputs.len() {
        let scores = scores(&distances, &left, faulty);
        let best = scores.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        let Some((at, _)) = best else { break };
        taken.push(left.remove(at));
    }
    taken.sort_unstable();
    taken
}

/// The mean of the `keep` values of one sorted column that are nearest to its median.
fn middle(columns: &[[f32; LANES]], lane: usize, keep: usize) -> f32 {
    let n = columns.len();
    let value = |k: usize| columns[k][lane];
    let median = 0.5 * value((n - 1) / 2) + 0.5 * value(n / 2);
    // The nearest are a run: the one whose further end is nearest.
    let reach = |first: usize| (median - value(first)).max(value(first + keep - 1) - median);
    let first = (0..=n - keep).min_by(|a, b| reach(*a).total_cmp(&reach(*b)));
    let first = first.unwrap_or(0);
    let sum: f32 = (first..first + keep).map(value).sum();
    sum / keep as f32
}

impl Aggregator for Bulyan {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let faulty = self.faulty.min(inputs.len().saturating_sub(3) / 4);
        let chosen = taken(inputs, faulty);
        let keep = chosen.len() - 2 * faulty;
        let values: Vec<&[f32]> = chosen.into_iter().map(|k| inputs[k].0).collect();
        if values.is_empty() {
            return out.fill(0.0);
        }
        self.network.sorted(&values, out.len(), |range, columns| {
            for (lane, o) in out[range].iter_mut().enumerate() {
                *o = middle(columns, lane, keep);
            }
        });
    }
}
