//! Aggregation rule `sign-majority`: in each coordinate every peer has one vote.

use super::kind::{AggregationSpec, Nature};
use super::{Aggregator, Input};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "sign-majority",
    summary: "the majority of signs in each coordinate",
    equation: "v_d = sign(sum_k sign(x_kd))",
    source: "Bernstein et al., ICML 2018",
    parameters: &[],
    nature: Nature::Signs,
    coordinate_wise: true,
    contributions: |_| 1,
    build: |_| Some(Box::new(SignMajority)),
};

/// `out_d = sign(sum_k sign(x_kd))`, in -1, 0, 1, with sign(0) = 0.
///
/// f liars cannot change a coordinate in which honest votes lead by more than f. Weights are not
/// used: a liar would claim the largest. Coordinate-wise, no state. The result is a direction
/// without a length, for gradients: only the learning rate sets the length of a step. Source:
/// Bernstein et al., "signSGD: compressed optimisation for non-convex problems" (ICML 2018),
/// algorithm 3, and "signSGD with majority vote is communication efficient and fault tolerant"
/// (ICLR 2019). One input: its sign.
struct SignMajority;

/// Values that are counted together, so that the counts stay in the first-level cache.
const RUN: usize = 1024;

fn vote(x: f32) -> f32 {
    f32::from(u8::from(x > 0.0)) - f32::from(u8::from(x < 0.0))
}

impl Aggregator for SignMajority {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        for (at, out) in out.chunks_mut(RUN).enumerate() {
            out.fill(0.0);
            for (values, _) in inputs {
                let values = &values[at * RUN..at * RUN + out.len()];
                out.iter_mut().zip(values).for_each(|(o, x)| *o += vote(*x));
            }
            out.iter_mut().for_each(|o| *o = vote(*o));
        }
    }
}
