//! Outer optimizer `no-lo-co`: outer momentum on random pairs, without an all-reduce.

use super::kind::{Fragment, Nature, OuterSpec, lr, momentum};
use crate::parameter::{Number, Parameter, Range as Values};

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
///
/// As an outer optimizer, `delta` is `beta` times the mean delta plus `gamma` times the difference
/// to the mean anchor. The Executor computes it from the mixed parameters and anchors
/// ([`Companion::Anchors`](crate::correct::Companion)).
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
    state_multiple: 1,
    build: |kind| {
        let alpha = kind.single("momentum");
        Box::new(move |of: Fragment<'_>| {
            let velocity = &mut of.state[of.range];
            for ((phi, m), d) in of.anchor.iter_mut().zip(velocity).zip(of.delta) {
                *m = alpha * *m + *d;
                *phi += *m;
            }
        })
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
