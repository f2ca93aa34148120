//! SGD with momentum and weight decay on flat slices.

use super::kind::{InnerSpec, decay, lr, momentum};
use super::{InnerOptimizer, Kept};
use std::ops::Range;

pub(super) const SPEC: InnerSpec = InnerSpec {
    name: "sgd",
    summary: "with momentum and L2 decay",
    equation: "v' = mu v + g + decay x, x' = x - lr v'",
    source: "Polyak 1964; Sutskever et al., ICML 2013",
    parameters: &[lr(0.1), momentum(0.0), decay(0.0)],
    needs_shapes: false,
    counts_steps: false,
    build: |kind, layout| {
        let [lr, momentum, decay] = ["lr", "momentum", "weight_decay"].map(|key| kind.single(key));
        Box::new(Sgd::new(layout.len(), lr, momentum, decay))
    },
};

/// Stochastic gradient descent with (heavy-ball) momentum and L2 weight decay.
///
/// ```text
/// g  = gradient + weight_decay * x
/// v' = momentum * v + g
/// x' = x - lr * v'
/// ```
///
/// Shapes: x, gradient, v: `[len]`, f32. Source: Polyak, "Some methods of speeding up the
/// convergence of iteration methods" (1964); the learning rate stands outside the momentum
/// as in Sutskever et al., "On the importance of initialization and momentum in deep learning"
/// (ICML 2013), section 2, up to that scaling. Special cases: `momentum = 0` is plain SGD and keeps
/// no state; `weight_decay = 0` has no decay.
#[derive(Clone, Debug)]
pub struct Sgd {
    lr: f32,
    momentum: f32,
    weight_decay: f32,
    kept: Kept,
}

impl Sgd {
    /// For `len` parameters. Keeps a velocity only where there is momentum.
    pub fn new(len: usize, lr: f32, momentum: f32, weight_decay: f32) -> Self {
        Self {
            lr,
            momentum,
            weight_decay,
            kept: Kept::zeros(len, usize::from(momentum != 0.0)),
        }
    }
}

impl InnerOptimizer for Sgd {
    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn kept_mut(&mut self) -> &mut Kept {
        &mut self.kept
    }

    fn step(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        let (lr, momentum) = (self.kept.scaled(self.lr), self.momentum);
        let weight_decay = self.kept.decay(self.weight_decay);
        if self.momentum == 0.0 {
            for (x, g) in params.iter_mut().zip(gradient) {
                *x -= lr * (g + weight_decay * *x);
            }
            return;
        }
        let velocity = &mut self.kept.values[range];
        for ((x, g), v) in params.iter_mut().zip(gradient).zip(velocity) {
            *v = momentum * *v + (g + weight_decay * *x);
            *x -= lr * *v;
        }
    }
}
