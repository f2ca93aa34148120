//! Outer optimizer `nesterov`: Nesterov momentum on the pseudo-gradient, as in DiLoCo.

use super::kind::{Method, Nature, OuterSpec, STATE, lr, momentum};
use std::ops::Range;

pub(super) const SPEC: OuterSpec = OuterSpec {
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
        Box::new(Nesterov { lr, momentum })
    },
};

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
struct Nesterov {
    lr: f32,
    momentum: f32,
}

impl Method for Nesterov {
    fn apply(
        &mut self,
        state: &mut [f32],
        range: Range<usize>,
        anchor: &mut [f32],
        delta: &mut [f32],
    ) {
        let (lr, momentum) = (self.lr, self.momentum);
        let velocity = &mut state[range];
        for ((a, d), m) in anchor.iter_mut().zip(delta).zip(velocity) {
            let g = -*d;
            *m = momentum * *m + g;
            *a -= lr * (g + momentum * *m);
        }
    }
}
