//! Aggregation rule `centered-clip`: every contribution moves the center by at most tau.

use super::kernels::{RUN, distances_to};
use super::kind::{AggregationSpec, RADIUS, iterations};
use super::{Aggregator, Bucketing, Input, Median};
use crate::parameter::{Number, Parameter, Range};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "centered-clip",
    summary: "every contribution moves the center by at most a radius",
    equation: "v' = v + (1/n) sum_k (x_k - v) min(1, radius / ||x_k - v||)",
    source: "Karimireddy et al., ICML 2021",
    parameters: &[RADIUS, iterations(3.0), BUCKET],
    ..AggregationSpec::of(|kind| {
        let iterations = kind.count("iterations") as u32;
        let rule = Box::new(CenteredClip::new(kind.number(RADIUS.name), iterations));
        Some(match kind.count(BUCKET.name) {
            0 | 1 => rule,
            bucket => Box::new(Bucketing::new(rule, bucket, BUCKET_SEED)),
        })
    })
};

/// Contributions of a bucket.
const BUCKET: Parameter = Parameter::new(
    "bucket",
    Range::Count(Number::Size, 1, 16),
    1.0,
    "contributions averaged before the rule",
);

/// Seed of the buckets: shuffles are for variance, not for secrecy.
const BUCKET_SEED: u64 = 0x6d75_726d;

/// Centered clipping.
///
/// ```text
/// v' = v + (1/n) sum_k (x_k - v) min(1, tau / ||x_k - v||)
/// ```
///
/// f liars move v by at most `f tau / n` in an iteration, whatever they send. If tau is at least
/// the honest inputs' distance from v, `||v' - mean|| <= (f/n) (||v - mean|| + tau)` with the mean
/// of the honest ones. Weights are not used: a liar would claim the largest. Needs the distances
/// between whole inputs: two passes in an iteration. The paper starts from the last round's
/// aggregate and lets peers send momenta ([`CenteredClip::from_center`]: one times the parameters
/// of state, kept by the caller). In an exchange, in which the owner of a shard changes, it starts
/// from the coordinate median. `radius` is tau, in the unit of a contribution's norm. Source:
/// Karimireddy, He and Jaggi, "Learning from history for Byzantine robust optimization" (ICML
/// 2021), algorithm 2 and section 4; on each shard of a butterfly: Gorbunov et al., "Secure
/// distributed training at scale" (ICML 2022), algorithm
/// 2. Special case: tau beyond all distances is the plain mean after one iteration, from any start.
#[derive(Clone, Debug)]
pub struct CenteredClip {
    radius: f64,
    iterations: u32,
    start: Median,
}

impl CenteredClip {
    /// `radius` is tau, above zero.
    pub fn new(radius: f64, iterations: u32) -> Self {
        Self {
            radius,
            iterations,
            start: Median::default(),
        }
    }

    /// Iterates from the `center` that is given, in place.
    pub fn from_center(&self, inputs: &[Input<'_>], center: &mut [f32]) {
        let n = inputs.len().max(1) as f64;
        for _ in 0..self.iterations {
            let distances = distances_to(inputs, center).into_iter().map(f64::sqrt);
            let shares: Vec<f32> = distances
                .map(|distance| ((self.radius / distance).min(1.0) / n) as f32)
                .collect();
            let kept = 1.0 - shares.iter().sum::<f32>();
            for (at, v) in center.chunks_mut(RUN).enumerate() {
                v.iter_mut().for_each(|v| *v *= kept);
                for ((values, _), share) in inputs.iter().zip(&shares) {
                    let values = &values[at * RUN..at * RUN + v.len()];
                    v.iter_mut().zip(values).for_each(|(v, x)| *v += share * x);
                }
            }
        }
    }
}

impl Aggregator for CenteredClip {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        self.start.aggregate(inputs, out);
        self.from_center(inputs, out);
    }
}
