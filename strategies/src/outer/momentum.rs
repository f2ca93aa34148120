//! Outer optimizers with a momentum on the pseudo-gradient: `nesterov`, as in DiLoCo, and `slow-mo`, heavy-ball
//! momentum (also block momentum, BMUF).

use super::kind::{Fragment, Nature, OuterSpec, STATE, lr, momentum};

/// Nesterov momentum on the pseudo-gradient `g = -delta`.
///
/// ```text
/// m'      = momentum * m + g
/// anchor' = anchor - lr * (g + momentum * m')
/// ```
///
/// Shapes: anchor, delta, m: `[len]`, f32; m is the state. Source: Douillard et al., "DiLoCo"
/// (arXiv 2311.08105), algorithm 1 with the outer optimizer of section 2 (learning rate 0.7,
/// momentum 0.9); the momentum in the form of Sutskever et al. (ICML 2013), rewritten at the point
/// where the gradient is taken. Special cases: momentum 0 is `anchor + lr * delta`; with learning
/// rate 1 also `average`.
pub(super) const NESTEROV: OuterSpec = OuterSpec {
    name: "nesterov",
    summary: "momentum on the pseudo-gradient",
    equation: "m' = mu m - D, a' = a - lr (mu m' - D)",
    source: "Douillard et al., arXiv 2311.08105",
    parameters: &[lr(0.7), momentum(0.9), STATE],
    nature: Nature::Linear,
    unfit: |_| None,
    state_multiple: 1,
    build: |kind| {
        let [lr, momentum] = ["lr", "momentum"].map(|key| kind.single(key));
        Box::new(move |of: Fragment<'_>| {
            let velocity = &mut of.state[of.range];
            for ((a, d), m) in of.anchor.iter_mut().zip(of.delta).zip(velocity) {
                let g = -*d;
                *m = momentum * *m + g;
                *a -= lr * (g + momentum * *m);
            }
        })
    },
};

/// Slow momentum on the pseudo-gradient `g = -delta`.
///
/// ```text
/// u'      = momentum * u + g
/// anchor' = anchor - lr * u'
/// ```
///
/// Shapes: anchor, delta, u: `[len]`, f32; u is the state, one times the parameters. Source: Wang
/// et al., "SlowMo: improving communication-efficient distributed SGD with slow momentum" (ICLR
/// 2020), algorithm 1, where g is divided by the inner learning rate gamma and lr multiplied by it:
/// with a constant gamma that is the same. Also Chen and Huo, "Scalable training of deep learning
/// machines by incremental block training with intra-block parallel optimization and blockwise
/// model-update filtering" (ICASSP 2016), equations 3 and 4 (classical block momentum; block
/// learning rate lr). Special cases: momentum 0 and lr 1 is `average`.
pub(super) const SLOW_MO: OuterSpec = OuterSpec {
    name: "slow-mo",
    summary: "heavy-ball momentum on the pseudo-gradient (BMUF)",
    equation: "u' = mu u - D, a' = a - lr u'",
    source: "Wang et al., ICLR 2020",
    parameters: &[lr(1.0), momentum(0.5), STATE],
    build: |kind| {
        let [lr, momentum] = ["lr", "momentum"].map(|key| kind.single(key));
        Box::new(move |of: Fragment<'_>| {
            let velocity = &mut of.state[of.range];
            for ((a, d), u) in of.anchor.iter_mut().zip(of.delta).zip(velocity) {
                *u = momentum * *u - *d;
                *a -= lr * *u;
            }
        })
    },
    ..NESTEROV
};
