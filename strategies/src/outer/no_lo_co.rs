//! Outer optimizer `no-lo-co`: outer momentum on random pairs, without an all-reduce.

use super::OuterOptimizer;
use super::kind::{Nature, OuterSpec, lr, momentum};
use crate::parameter::{Number, Parameter, Range as Values};
use std::ops::Range;

pub(super) const SPEC: OuterSpec = OuterSpec {
    name: "no-lo-co",
    summary: "momentum on random pairs, each with an anchor of its own",
    equation: "m' = mu m + lr mean_j (x_j - a_j) + pull (mean_j a_j - a_i), a' = a + m', j the pair",
    source: "Kolehmainen et al., arXiv 2506.10911",
    parameters: &[lr(0.7), momentum(0.5), PULL],
    nature: Nature::Pairs,
    // The paper's bounds for groups of two.
    unfit: |kind| {
        let [momentum, pull] = ["momentum", "pull"].map(|key| kind.number(key));
        let fits = pull > momentum && pull * pull < 2.0 + momentum * momentum;
        (!fits).then_some("pull")
    },
    build: |kind, len| {
        let [momentum, lr, pull] = ["momentum", "lr", "pull"].map(|key| kind.single(key));
        Box::new(NoLoCo::new(len, momentum, lr, pull))
    },
};

const PULL: Parameter = Parameter::new(
    "pull",
    Values::Words(
        Number::Real,
        "above the momentum mu and below sqrt(2 + mu^2)",
    ),
    0.7,
    "how far towards the pair's mean anchor, gamma in the paper",
);

/// Modified Nesterov momentum of one peer i in a group of n (pairs: n = 2).
///
/// ```text
/// m'   = alpha m + beta (1/n) sum_j (theta_j - phi_j) + gamma ((1/n) sum_j phi_j - phi_i)
/// phi' = phi_i + m'
/// ```
///
/// with theta the parameters after the round's inner steps and phi the anchors, which differ
/// between peers; j runs over the group, which includes i. The last term pulls the anchors
/// together. Shapes: `[len]`, f32; the state is m and the peer's anchor, twice the parameters.
/// Source: Kolehmainen et al., "NoLoCo: no-all-reduce low communication training for large models"
/// (2025), section 3.2, equations 2 and 3. Special cases: gamma = 0 and equal anchors is SlowMo
/// with learning rate beta on the group; alpha = 0 and beta = gamma = 1 is the mean of the
/// parameters.
#[derive(Clone, Debug)]
pub struct NoLoCo {
    alpha: f32,
    beta: f32,
    gamma: f32,
    velocity: Vec<f32>,
}

impl NoLoCo {
    /// For `len` parameters.
    pub fn new(len: usize, alpha: f32, beta: f32, gamma: f32) -> Self {
        Self {
            alpha,
            beta,
            gamma,
            velocity: vec![0.0; len],
        }
    }

    /// Moves the peer's anchor. `deltas` and `anchors` are those of all members, this peer
    /// included.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn mix(&mut self, anchor: &mut [f32], deltas: &[&[f32]], anchors: &[&[f32]]) {
        assert_eq!(deltas.len(), anchors.len(), "one delta for each anchor");
        let share = 1.0 / deltas.len().max(1) as f32;
        for (i, (phi, m)) in anchor.iter_mut().zip(&mut self.velocity).enumerate() {
            let delta: f32 = deltas.iter().map(|delta| delta[i]).sum();
            let mean: f32 = anchors.iter().map(|anchor| anchor[i]).sum::<f32>() * share;
            *m = self.alpha * *m + self.beta * share * delta + self.gamma * (mean - *phi);
            *phi += *m;
        }
    }
}

/// As an outer optimizer, `delta` is `beta` times the mean delta plus `gamma` times the difference
/// to the mean anchor. The Executor computes it from the mixed parameters and anchors
/// ([`Companion::Anchors`](crate::correct::Companion)).
impl OuterOptimizer for NoLoCo {
    fn apply(&mut self, range: Range<usize>, anchor: &mut [f32], delta: &mut [f32]) {
        let velocity = &mut self.velocity[range];
        for ((phi, m), d) in anchor.iter_mut().zip(velocity).zip(delta) {
            *m = self.alpha * *m + *d;
            *phi += *m;
        }
    }

    fn state_multiple(&self) -> usize {
        1
    }

    fn state(&self) -> &[f32] {
        &self.velocity
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.velocity
    }
}
