//! Aggregation rules `krum` and `multi-krum`: the inputs with the nearest neighbours.

use super::kernels::{RUN, distance_squared, weighted_sum};
use super::kind::{AggregationSpec, LIARS};
use super::{Aggregator, Input};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "krum",
    summary: "the contribution with the nearest neighbours",
    equation: "x_k of the least sum of ||x_k - x_j||^2 over the n - f - 2 nearest j",
    source: "Blanchard et al., NeurIPS 2017",
    parameters: &[LIARS],
    contributions: |faulty| 2 * faulty + 3,
    ..AggregationSpec::of(|kind| Some(Box::new(Krum::new(kind.faulty()))))
};

pub(super) const MULTI: AggregationSpec = AggregationSpec {
    name: "multi-krum",
    summary: "the mean of the contributions with the nearest neighbours",
    equation: "the mean of the n - f x_k of least score, scores as krum's",
    build: |kind| Some(Box::new(Krum::multi(kind.faulty()))),
    ..SPEC
};

/// The input with the smallest score (`krum`), or the mean of the m inputs with the smallest
/// (`multi-krum`):
///
/// ```text
/// score(k) = sum of ||x_k - x_j||^2 over the n - f - 2 inputs j nearest to k
/// ```
///
/// With `n >= 2 f + 3` and honest inputs at most D apart, the result is within
/// `D (1 + sqrt((n - f - 2) / (n - 2 f - 1)))` of every honest input. With fewer inputs, f is the
/// largest number that they allow, `(n - 3) / 2`. Weights are not used: a liar would claim the
/// largest. Needs all `n (n - 1) / 2` distances between whole inputs; no state. Ties go to the
/// earlier input (`PeerId` order). Source: Blanchard et al., "Machine learning with adversaries:
/// Byzantine tolerant gradient descent" (NeurIPS 2017), section 4; multi-Krum in section 5 with
/// `m = n - f`. Special case: f = 0 of multi-Krum is the plain mean.
#[derive(Clone, Debug)]
pub struct Krum {
    faulty: usize,
    many: bool,
}

impl Krum {
    /// The single best input.
    pub const fn new(faulty: usize) -> Self {
        Self {
            faulty,
            many: false,
        }
    }

    /// The mean of the best `n - f`.
    pub const fn multi(faulty: usize) -> Self {
        Self { faulty, many: true }
    }
}

/// The number of liars that `count` inputs of Krum allow, at most `asked`.
pub(super) fn allowed(asked: usize, count: usize) -> usize {
    asked.min(count.saturating_sub(3) / 2)
}

/// All squared distances, row by row. In runs over all pairs, so that the inputs are read from memory once.
pub(super) fn distances(inputs: &[Input<'_>]) -> Vec<Vec<f64>> {
    let n = inputs.len();
    let mut all = vec![vec![0.0; n]; n];
    let len = inputs.first().map_or(0, |(values, _)| values.len());
    for start in (0..len).step_by(RUN) {
        let run = start..(start + RUN).min(len);
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let [a, b] = [i, j].map(|k| &inputs[k].0[run.clone()]);
            let square = distance_squared(a, b);
            all[i][j] += square;
            all[j][i] += square;
        }
    }
    all
}

/// The scores of the inputs in `among`, in its order.
pub(super) fn scores(distances: &[Vec<f64>], among: &[usize], faulty: usize) -> Vec<f64> {
    let nearest = among.len().saturating_sub(faulty + 2).max(1);
    among
        .iter()
        .map(|k| {
            let others = among.iter().filter(|j| *j != k);
            let mut row: Vec<f64> = others.map(|j| distances[*k][*j]).collect();
            row.sort_by(f64::total_cmp);
            row.iter().take(nearest).sum()
        })
        .collect()
}

impl Aggregator for Krum {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let faulty = allowed(self.faulty, inputs.len());
        let mut order: Vec<usize> = (0..inputs.len()).collect();
        let scores = scores(&distances(inputs), &order, faulty);
        order.sort_by(|i, j| scores[*i].total_cmp(&scores[*j]));
        let keep = if self.many { inputs.len() - faulty } else { 1 };
        order.truncate(keep);
        // Summed in the order of the inputs, not of the scores.
        order.sort_unstable();
        let share = 1.0 / order.len().max(1) as f32;
        weighted_sum(order.iter().map(|k| (inputs[*k].0, share)), out);
    }
}
