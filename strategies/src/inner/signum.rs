//! Signum on flat slices: the sign of a momentum.

use super::InnerOptimizer;
use super::kind::{InnerSpec, decay, lr, momentum};
use super::optimizer::{Kept, Method};
use std::ops::Range;

pub(super) const SPEC: InnerSpec = InnerSpec {
    name: "signum",
    summary: "the sign of a momentum",
    equation: "m' = mu m + (1 - mu) g, x' = x - lr (sign(m') + decay x)",
    source: "Bernstein et al., ICML 2018",
    parameters: &[lr(0.0001), momentum(0.9), decay(0.0)],
    needs_shapes: false,
    counts_steps: false,
    build: |kind, layout| {
        let [lr, momentum, weight_decay] =
            ["lr", "momentum", "weight_decay"].map(|key| kind.single(key));
        let method = Signum {
            lr,
            momentum,
            weight_decay,
        };
        InnerOptimizer::new(layout.len(), 1, method)
    },
};

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
struct Signum {
    lr: f32,
    momentum: f32,
    weight_decay: f32,
}

impl Method for Signum {
    fn step(&mut self, kept: &mut Kept, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        let (lr, decay) = kept.rates(self.lr, self.weight_decay);
        let beta = self.momentum;
        let velocity = &mut kept.values[range];
        for ((x, g), m) in params.iter_mut().zip(gradient).zip(velocity) {
            *m = beta * *m + (1.0 - beta) * g;
            let sign = f32::from(u8::from(*m > 0.0)) - f32::from(u8::from(*m < 0.0));
            *x -= lr * (sign + decay * *x);
        }
    }
}
