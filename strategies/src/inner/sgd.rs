//! SGD with momentum and weight decay on flat slices.

use super::InnerOptimizer;
use super::kind::{InnerSpec, decay, lr, momentum};
use super::optimizer::{Kept, Method};
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
        let [lr, momentum, weight_decay] =
            ["lr", "momentum", "weight_decay"].map(|key| kind.single(key));
        let method = Sgd {
            lr,
            momentum,
            weight_decay,
        };
        InnerOptimizer::new(layout.len(), usize::from(momentum != 0.0), method)
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
struct Sgd {
    lr: f32,
    momentum: f32,
    weight_decay: f32,
}

impl Method for Sgd {
    fn step(&mut self, kept: &mut Kept, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        let (lr, weight_decay) = kept.rates(self.lr, self.weight_decay);
        let momentum = self.momentum;
        if momentum == 0.0 {
            for (x, g) in params.iter_mut().zip(gradient) {
                *x -= lr * (g + weight_decay * *x);
            }
            return;
        }
        let velocity = &mut kept.values[range];
        for ((x, g), v) in params.iter_mut().zip(gradient).zip(velocity) {
            *v = momentum * *v + (g + weight_decay * *x);
            *x -= lr * *v;
        }
    }
}
