//! Aggregation rules that compare contributions in each coordinate alone: `median`, `trimmed-mean`, the mean without
//! extremes, and `sign-majority`, in which every peer has one vote.

use super::kernels::{Network, RUN};
use super::kind::{AggregationSpec, LIARS, Nature};
use super::{Aggregator, Input};

pub(super) const MEDIAN: AggregationSpec = AggregationSpec {
    name: "median",
    summary: "the median of each coordinate",
    equation: "v_d = median of x_kd over k",
    source: "Yin et al., ICML 2018",
    coordinate_wise: true,
    ..AggregationSpec::of(|_| Some(Box::new(Median::default())))
};

/// `out_d = median_k x_kd`; the mean of the two middle values for even n.
///
/// With f < n/2 liars every coordinate lies between the smallest and the largest honest value; for
/// honest inputs of variance sigma^2 the error is `O(sigma f / n + sigma / sqrt(n))` for each
/// coordinate. Weights are not used: a liar would claim the largest. Coordinate-wise, no state;
/// sorts by a fixed network, `O(n log^2 n)` comparisons. On skewed data it is biased even without
/// liars. Source: Yin et al., "Byzantine-robust distributed learning: towards optimal statistical
/// rates" (ICML 2018), algorithm 1, option I. One or two inputs: their mean.
#[derive(Clone, Debug, Default)]
pub struct Median {
    network: Network,
}

impl Aggregator for Median {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let values: Vec<&[f32]> = inputs.iter().map(|(values, _)| *values).collect();
        let (low, high) = ((values.len().max(1) - 1) / 2, values.len() / 2);
        if values.is_empty() {
            return out.fill(0.0);
        }
        self.network.sorted(&values, out.len(), |range, columns| {
            let middle = columns[low].iter().zip(&columns[high]);
            for (o, (a, b)) in out[range].iter_mut().zip(middle) {
                *o = 0.5 * a + 0.5 * b;
            }
        });
    }
}

pub(super) const TRIMMED_MEAN: AggregationSpec = AggregationSpec {
    name: "trimmed-mean",
    summary: "the mean of each coordinate without its extremes",
    equation: "v_d = the mean of x_kd without the f least and the f largest",
    source: "Yin et al., ICML 2018",
    parameters: &[LIARS],
    coordinate_wise: true,
    contributions: |faulty| 2 * faulty + 1,
    ..AggregationSpec::of(|kind| Some(Box::new(TrimmedMean::new(kind.faulty()))))
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

/// `out_d = sign(sum_k sign(x_kd))`, in -1, 0, 1, with sign(0) = 0.
///
/// f liars cannot change a coordinate in which honest votes lead by more than f. Weights are not
/// used: a liar would claim the largest. Coordinate-wise, no state. The result is a direction
/// without a length, for gradients: only the learning rate sets the length of a step. Source:
/// Bernstein et al., "signSGD: compressed optimisation for non-convex problems" (ICML 2018),
/// algorithm 3, and "signSGD with majority vote is communication efficient and fault tolerant"
/// (ICLR 2019). One input: its sign.
pub(super) const SIGN_MAJORITY: AggregationSpec = AggregationSpec {
    name: "sign-majority",
    summary: "the majority of signs in each coordinate",
    equation: "v_d = sign(sum_k sign(x_kd))",
    source: "Bernstein et al., ICML 2018",
    nature: Nature::Signs,
    coordinate_wise: true,
    ..AggregationSpec::of(|_| {
        Some(Box::new(|inputs: &[Input<'_>], out: &mut [f32]| {
            for (at, out) in out.chunks_mut(RUN).enumerate() {
                out.fill(0.0);
                for (values, _) in inputs {
                    let values = &values[at * RUN..at * RUN + out.len()];
                    out.iter_mut().zip(values).for_each(|(o, x)| *o += vote(*x));
                }
                out.iter_mut().for_each(|o| *o = vote(*o));
            }
        }))
    })
};

fn vote(x: f32) -> f32 {
    f32::from(u8::from(x > 0.0)) - f32::from(u8::from(x < 0.0))
}
