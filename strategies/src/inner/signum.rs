//! Signum on flat slices: the sign of a momentum.

use super::InnerOptimizer;
use std::ops::Range;

/// Signum with decoupled decay.
///
/// ```text
/// m' = momentum m + (1 - momentum) g
/// x' = x - lr (sign(m') + weight_decay x)
/// ```
///
/// with sign(0) = 0. Shapes: x, g, m: `[len]`, f32; the state is m, one times the parameters. Every
/// value moves by the learning rate, so x converges only if the learning rate falls. Source:
/// Bernstein et al., "signSGD: compressed optimisation for non-convex problems" (ICML 2018),
/// algorithm 2; decay as in Chen et al., "Symbolic discovery of optimization algorithms" (NeurIPS
/// 2023). Special case: momentum 0 is signSGD.
#[derive(Clone, Debug)]
pub struct Signum {
    lr: f32,
    momentum: f32,
    weight_decay: f32,
    steps: u64,
    velocity: Vec<f32>,
}

impl Signum {
    /// For `len` parameters.
    pub fn new(len: usize, lr: f32, momentum: f32, weight_decay: f32) -> Self {
        Self {
            lr,
            momentum,
            weight_decay,
            steps: 0,
            velocity: vec![0.0; len],
        }
    }
}

impl InnerOptimizer for Signum {
    fn name(&self) -> &'static str {
        "signum"
    }

    fn state_multiple(&self) -> usize {
        1
    }

    fn begin_step(&mut self) {
        self.steps += 1;
    }

    fn apply(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        assert_eq!(params.len(), range.len(), "parameters of the piece");
        assert_eq!(gradient.len(), range.len(), "gradient of the piece");
        let (lr, beta, decay) = (self.lr, self.momentum, self.weight_decay);
        let velocity = &mut self.velocity[range];
        for ((x, g), m) in params.iter_mut().zip(gradient).zip(velocity) {
            *m = beta * *m + (1.0 - beta) * g;
            let sign = f32::from(u8::from(*m > 0.0)) - f32::from(u8::from(*m < 0.0));
            *x -= lr * (sign + decay * *x);
        }
    }

    fn step_count(&self) -> u64 {
        self.steps
    }

    fn set_step_count(&mut self, steps: u64) {
        self.steps = steps;
    }

    fn state(&self) -> &[f32] {
        &self.velocity
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.velocity
    }
}
