//! Elastic averaging (EASGD): parameters and a center move towards each other. Only the arithmetic,
//! for tests: `executor::mixers::center` applies both halves for many peers.

use super::kind::{Average, Nature, OuterSpec};
use crate::parameter::{Parameter, Range};

pub(super) const SPEC: OuterSpec = OuterSpec {
    name: "easgd",
    summary: "elastic averaging with a center",
    equation: "x' = x - alpha (x - c), c' = c + alpha (x - c)",
    source: "Zhang et al., NeurIPS 2015",
    parameters: &[ALPHA],
    nature: Nature::Elastic,
    unfit: |_| None,
    state_multiple: 0,
    build: |_| Box::new(Average),
};

const ALPHA: Parameter = Parameter::new(
    "alpha",
    Range::Between,
    0.225,
    "how much of the distance goes each way",
);

/// One exchange between a peer and the center.
///
/// ```text
/// x'      = x - alpha (x - center)
/// center' = center + alpha (x - center)
/// ```
///
/// with the old x and center on the right, for each peer in turn (asynchronous) or all on the same
/// old center (synchronous: with the sum of all differences). Their sum is conserved. Shapes:
/// `[len]`, f32; the state is the center, once the parameters, and each peer's own parameters,
/// which stay apart. Stable for `0 <= n alpha <= 1` in the synchronous form. Source: Zhang,
/// Choromanska and LeCun, "Deep learning with elastic averaging SGD" (NeurIPS 2015), equations 2
/// and 3 and algorithm 1. Special cases: alpha = 1/2 is the mean of both; alpha = 0 changes
/// nothing.
///
/// # Panics
/// If the lengths differ.
pub fn elastic(x: &mut [f32], center: &mut [f32], alpha: f32) {
    assert_eq!(x.len(), center.len());
    for (x, c) in x.iter_mut().zip(center) {
        let pull = alpha * (*x - *c);
        *x -= pull;
        *c += pull;
    }
}
