//! Correction `fed-prox`: a quadratic penalty pulls every inner step towards the anchor.

use super::Correction;
use super::correction::{CorrectionSpec, Needs};
use crate::parameter::{Parameter, Range};

pub(super) const SPEC: CorrectionSpec = CorrectionSpec {
    name: "fed-prox",
    summary: "a spring to the anchor",
    equation: "g' = g + mu (x - a)",
    source: "Li et al., MLSys 2020",
    parameters: &[MU],
    needs: Needs::Anchor,
    state_multiple: 1,
    build: |kind, len, _| Some(Box::new(FedProx::new(len, kind.number(MU.name) as f32))),
};

const MU: Parameter = Parameter::new("mu", Range::Above, 0.01, "the strength of the spring");

/// The gradient of `f_i(x) + mu/2 ||x - anchor||^2`.
///
/// ```text
/// g' = g + mu (x - anchor)
/// ```
///
/// Shapes: `[len]`, f32; state: the anchor, one value per parameter. Sends nothing beyond local
/// SGD. It bounds the drift but does not remove it: with more than one inner step the fixed point
/// differs from the common optimum. `mu` has the unit of a curvature, the inverse of a learning
/// rate. Source: Li et al., "Federated optimization in heterogeneous networks" (MLSys 2020),
/// algorithm 2, equation 2. Special cases: `mu = 0` is local SGD; where a delta is kept for the
/// next round, the anchor moves with the parameters and their distance stays.
#[derive(Clone, Debug)]
pub struct FedProx {
    mu: f32,
    anchor: Vec<f32>,
}

impl FedProx {
    /// A penalty of strength `mu` for `len` parameters. The first `taken_over` sets the anchor.
    pub fn new(len: usize, mu: f32) -> Self {
        let anchor = vec![0.0; len];
        Self { mu, anchor }
    }
}

impl Correction for FedProx {
    fn taken_over(&mut self, offset: usize, trained: &[f32], taken: &[f32], agreed: bool, _: u64) {
        let anchor = &mut self.anchor[offset..offset + taken.len()];
        if agreed {
            return anchor.copy_from_slice(taken);
        }
        for ((a, before), after) in anchor.iter_mut().zip(trained).zip(taken) {
            *a += after - before;
        }
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        let anchor = &self.anchor[offset..offset + values.len()];
        for ((g, x), a) in gradient.iter_mut().zip(values).zip(anchor) {
            *g += self.mu * (x - a);
        }
    }
}
