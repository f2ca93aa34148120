//! Nearest-neighbour mixing: another rule is applied to means of the inputs nearest to each.

use super::kernels::weighted_sum;
use super::kind::{AggregationSpec, LIARS};
use super::krum::distances;
use super::{Aggregator, Input, TrimmedMean};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "nearest-trimmed-mean",
    summary: "the trimmed mean of means of near inputs",
    equation: "y_k = the mean of the n - f inputs nearest to x_k; then by coordinate the mean of y without its f extremes",
    source: "Allouah et al., AISTATS 2023",
    parameters: &[LIARS],
    contributions: |faulty| 2 * faulty + 1,
    ..AggregationSpec::of(|kind| {
        let faulty = kind.faulty();
        Some(Box::new(NearestMeans {
            rule: TrimmedMean::new(faulty),
            faulty,
            means: Vec::new(),
        }))
    })
};

/// Replaces every input by the mean of the `n - f` inputs nearest to it, itself among them, and applies
/// another rule to the means.
///
/// ```text
/// y_k = mean of the n - f inputs x_j of least ||x_k - x_j||,   out = rule(y_1, ..., y_n)
/// ```
///
/// Honest peers with unequal data differ, and a rule that goes by coordinates or by one input is biased
/// then. Their means differ less: with it, rules such as the trimmed mean reach the least error
/// that any rule can have, `O(f / n)` of the honest inputs' variance, where `n > 2 f`. The weight of a
/// mean is that of its input. Needs all `n (n - 1) / 2` distances, and as much scratch as the
/// inputs are. Ties go to the earlier input (`PeerId` order). **Source:** Allouah et al., "Fixing by
/// mixing: a recipe for optimal Byzantine ML under heterogeneity" (AISTATS 2023), algorithm 2.
/// Special case: f = 0 makes all means equal, which is the plain mean.
struct NearestMeans {
    rule: TrimmedMean,
    faulty: usize,
    means: Vec<Vec<f32>>,
}

impl Aggregator for NearestMeans {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let n = inputs.len();
        let keep = n.saturating_sub(self.faulty.min(n.saturating_sub(1) / 2));
        let distances = distances(inputs);
        self.means.resize(n, Vec::new());
        for (row, mean) in distances.iter().zip(&mut self.means) {
            let mut nearest: Vec<usize> = (0..n).collect();
            nearest.sort_by(|i, j| row[*i].total_cmp(&row[*j]));
            nearest.truncate(keep);
            // Summed in the order of the inputs, so that equal sets have equal means.
            nearest.sort_unstable();
            mean.clear();
            mean.resize(out.len(), 0.0);
            let share = 1.0 / keep.max(1) as f32;
            weighted_sum(nearest.iter().map(|k| (inputs[*k].0, share)), mean);
        }
        let means = self.means.iter().map(Vec::as_slice);
        let weights = inputs.iter().map(|(_, weight)| *weight);
        let means: Vec<Input<'_>> = means.zip(weights).collect();
        self.rule.aggregate(&means, out);
    }
}
