//! Aggregation rule `geometric-median`: the point with the smallest sum of distances.

use super::kernels::{distances_to, weighted_sum};
use super::kind::{AggregationSpec, iterations};
use super::{Aggregator, Input, Median};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "geometric-median",
    summary: "the smallest sum of distances",
    equation: "v' = sum_k b_k x_k / sum_k b_k, b_k = w_k / max(nu, ||v - x_k||)",
    source: "Pillutla et al., IEEE TSP 2022",
    parameters: &[iterations(8.0)],
    ..AggregationSpec::of(|kind| {
        let iterations = kind.count("iterations") as u32;
        Some(Box::new(GeometricMedian::new(SMOOTHING, iterations)))
    })
};

/// Smoothing, relative to the median distance.
const SMOOTHING: f64 = 1e-6;

/// RFA: the smoothed Weiszfeld iteration for `argmin_v sum_k a_k ||v - x_k||`.
///
/// ```text
/// b_k = a_k / max(nu, ||v - x_k||),   v' = sum_k b_k x_k / sum_k b_k
/// ```
///
/// If liars have a share `alpha < 1/2` of the weight, the minimum lies within
/// `2 (1 - alpha) / (1 - 2 alpha) max_k ||x_k - x||` over honest k of any point x. It needs the
/// distances between whole inputs: two passes in an iteration; no state. The paper leaves the start
/// open; here it is the coordinate median, so that a huge outlier costs no iterations. Source:
/// Pillutla, Kakade and Harchaoui, "Robust aggregation for federated learning" (IEEE TSP 2022),
/// algorithm 2 and equation 5; the bound from Minsker, "Geometric median and robust estimation in
/// Banach spaces" (2015), lemma 2.1. Special cases: one input is itself; nu beyond all distances is
/// the weighted mean.
#[derive(Clone, Debug)]
pub struct GeometricMedian {
    smoothing: f64,
    iterations: u32,
    start: Median,
}

impl GeometricMedian {
    /// `smoothing` is nu, above zero, relative to the median of the distances to the start.
    pub fn new(smoothing: f64, iterations: u32) -> Self {
        Self {
            smoothing,
            iterations,
            start: Median::default(),
        }
    }
}

impl Aggregator for GeometricMedian {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        self.start.aggregate(inputs, out);
        let mut smallest = None;
        for _ in 0..self.iterations {
            let squares = distances_to(inputs, out).into_iter();
            let distances: Vec<f64> = squares.map(f64::sqrt).collect();
            // The median distance: a scale that liars cannot move while they are few.
            let nu = *smallest.get_or_insert_with(|| {
                let mut sorted = distances.clone();
                sorted.sort_by(f64::total_cmp);
                sorted.get(sorted.len() / 2).copied().unwrap_or(0.0) * self.smoothing
            });
            if nu == 0.0 {
                // More than half of them are this very point: it is the minimum.
                return;
            }
            let pulls = inputs.iter().zip(&distances);
            let pulls: Vec<f64> = pulls
                .map(|((_, weight), distance)| f64::from(*weight) / distance.max(nu))
                .collect();
            let total: f64 = pulls.iter().sum();
            let shares = pulls.iter().map(|pull| (pull / total) as f32);
            weighted_sum(inputs.iter().map(|(values, _)| *values).zip(shares), out);
        }
    }
}
