//! FedProx: a spring to the anchor in every inner step.

use super::Correction;

/// The gradient of `f_i(x) + mu/2 ||x - anchor||^2`.
///
/// ```text
/// g' = g + mu (x - anchor)
/// ```
///
/// Shapes: `[len]`, f32. Needs the anchor of the round, once the parameters, which a peer keeps anyway; sends
/// nothing more than local SGD. Source: Li et al., "Federated optimization in heterogeneous networks" (MLSys
/// 2020), algorithm 2, equation 2. It bounds the drift and does not remove it: the fixed point stays off the
/// common optimum for more than one inner step. Special case: mu = 0 is local SGD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FedProx {
    /// Strength of the spring.
    pub mu: f32,
}

impl FedProx {
    /// Corrects the gradient of one inner step in place.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn correct(&self, gradient: &mut [f32], x: &[f32], anchor: &[f32]) {
        assert!(gradient.len() == x.len() && x.len() == anchor.len());
        for ((g, x), a) in gradient.iter_mut().zip(x).zip(anchor) {
            *g += self.mu * (x - a);
        }
    }
}

/// FedProx with the anchor that it needs: what the train lane keeps.
///
/// Where a delta is kept for the next round, the anchor is as far from the parameters as it was.
#[derive(Clone, Debug)]
pub struct Spring {
    prox: FedProx,
    anchor: Vec<f32>,
}

impl Spring {
    /// For `len` parameters, which the first anchor is taken from.
    pub fn new(len: usize, mu: f32) -> Self {
        Self {
            prox: FedProx { mu },
            anchor: vec![0.0; len],
        }
    }
}

impl Correction for Spring {
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
        self.prox.correct(gradient, values, anchor);
    }
}
