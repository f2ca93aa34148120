//! Aggregation rule `trimmed-mean`: the mean of each coordinate without its extremes.

use super::kernels::Network;
use super::kind::{AggregationSpec, LIARS, Nature};
use super::{Aggregator, Input};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "trimmed-mean",
    summary: "the mean of each coordinate without its extremes",
    equation: "v_d = the mean of x_kd without the f least and the f largest",
    source: "Yin et al., ICML 2018",
    parameters: &[LIARS],
    nature: Nature::Robust,
    coordinate_wise: true,
    contributions: |faulty| 2 * faulty + 1,
    build: |kind| Some(Box::new(TrimmedMean::new(kind.faulty()))),
};

/// `out_d = (1 / (n - 2 f)) sum_{k=f+1}^{n-f} x_(k)d` over the sorted values of coordinate d.
///
/// With at most f liars every coordinate lies between the smallest and the largest honest value,
/// and the error is `O(sigma f / n + sigma / sqrt(n))`. Weights are not used: a liar would claim
/// the largest. With fewer inputs, f is the largest number that they allow, `(n - 1) / 2`.
/// Coordinate-wise, no state. Source: Yin et al., "Byzantine-robust distributed learning: towards
/// optimal statistical rates" (ICML 2018), algorithm 1, option II. Special cases: f = 0 is the
/// plain mean, `f = (n - 1) / 2` the median.
#[derive(Clone, Debug)]
pub struct TrimmedMean {
    faulty: usize,
    network: Network,
}

impl TrimmedMean {
    /// Drops `faulty` values on each side.
    pub fn new(faulty: usize) -> Self {
        Self {
            faulty,
            network: Network::default(),
        }
    }
}

impl Aggregator for TrimmedMean {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let values: Vec<&[f32]> = inputs.iter().map(|(values, _)| *values).collect();
        let drop = self.faulty.min(values.len().saturating_sub(1) / 2);
        let keep = drop..values.len() - drop;
        let share = 1.0 / keep.len().max(1) as f32;
        if values.is_empty() {
            return out.fill(0.0);
        }
        self.network.sorted(&values, out.len(), |range, columns| {
            let out = &mut out[range];
            out.fill(0.0);
            for column in &columns[keep.clone()] {
                out.iter_mut().zip(column).for_each(|(o, x)| *o += x);
            }
            out.iter_mut().for_each(|o| *o *= share);
        });
    }
}
