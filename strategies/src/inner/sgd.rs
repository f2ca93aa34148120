//! SGD with momentum and weight decay, and Signum, the sign of a momentum, on flat slices.

use super::InnerOptimizer;
use super::kind::{InnerSpec, decay, lr, momentum};
use super::optimizer::Piece;

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
        let multiple = usize::from(momentum != 0.0);
        InnerOptimizer::new(layout.len(), multiple, move |of: Piece<'_>| {
            let (lr, weight_decay) = of.kept.rates(lr, weight_decay);
            if momentum == 0.0 {
                for (x, g) in of.params.iter_mut().zip(of.gradient) {
                    *x -= lr * (g + weight_decay * *x);
                }
                return;
            }
            let velocity = &mut of.kept.values[of.range];
            for ((x, g), v) in of.params.iter_mut().zip(of.gradient).zip(velocity) {
                *v = momentum * *v + (g + weight_decay * *x);
                *x -= lr * *v;
            }
        })
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
pub(super) const SIGNUM: InnerSpec = InnerSpec {
    name: "signum",
    summary: "the sign of a momentum",
    equation: "m' = mu m + (1 - mu) g, x' = x - lr (sign(m') + decay x)",
    source: "Bernstein et al., ICML 2018",
    parameters: &[lr(0.0001), momentum(0.9), decay(0.0)],
    build: |kind, layout| {
        let [lr, momentum, weight_decay] =
            ["lr", "momentum", "weight_decay"].map(|key| kind.single(key));
        InnerOptimizer::new(layout.len(), 1, move |of: Piece<'_>| {
            let (lr, decay) = of.kept.rates(lr, weight_decay);
            let velocity = &mut of.kept.values[of.range];
            for ((x, g), m) in of.params.iter_mut().zip(of.gradient).zip(velocity) {
                *m = momentum * *m + (1.0 - momentum) * g;
                let sign = f32::from(u8::from(*m > 0.0)) - f32::from(u8::from(*m < 0.0));
                *x -= lr * (sign + decay * *x);
            }
        })
    },
    ..SPEC
};
