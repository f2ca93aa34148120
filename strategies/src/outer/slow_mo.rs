//! Outer optimizer `slow-mo`: heavy-ball momentum on the pseudo-gradient (also block momentum,
//! BMUF).

use super::kind::{Method, Nature, OuterSpec, STATE, lr, momentum};
use std::ops::Range;

pub(super) const SPEC: OuterSpec = OuterSpec {
    name: "slow-mo",
    summary: "heavy-ball momentum on the pseudo-gradient (BMUF)",
    equation: "u' = mu u - D, a' = a - lr u'",
    source: "Wang et al., ICLR 2020",
    parameters: &[lr(1.0), momentum(0.5), STATE],
    nature: Nature::Linear,
    unfit: |_| None,
    state_multiple: 1,
    build: |kind| {
        let [lr, momentum] = ["lr", "momentum"].map(|key| kind.single(key));
        Box::new(SlowMo { lr, momentum })
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
struct SlowMo {
    lr: f32,
    momentum: f32,
}

impl Method for SlowMo {
    fn apply(
        &mut self,
        state: &mut [f32],
        range: Range<usize>,
        anchor: &mut [f32],
        delta: &mut [f32],
    ) {
        let (lr, momentum) = (self.lr, self.momentum);
        let velocity = &mut state[range];
        for ((a, d), u) in anchor.iter_mut().zip(delta).zip(velocity) {
            *u = momentum * *u - *d;
            *a -= lr * *u;
        }
    }
}
