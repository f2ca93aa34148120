//! What arrives at a center one by one: elastic averaging (EASGD), weights of late contributions by their staleness,
//! and delay compensation. In an all-reduce no contribution is late.

use super::kind::{AVERAGE, Nature, OuterSpec};
use crate::parameter::{Parameter, Range};

pub(super) const EASGD: OuterSpec = OuterSpec {
    name: "easgd",
    summary: "elastic averaging with a center",
    equation: "x' = x - alpha (x - c), c' = c + alpha (x - c)",
    source: "Zhang et al., NeurIPS 2015",
    parameters: &[ALPHA],
    nature: Nature::Elastic,
    ..AVERAGE
};

const ALPHA: Parameter = Parameter::new(
    "alpha",
    Range::Between,
    0.225,
    "how much of the distance goes each way",
);

/// One exchange between a peer and the center. Only the arithmetic, for tests: `executor::mixers::center` applies both
/// halves for many peers.
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

/// The weight as a function of the staleness s in rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StalenessWeight {
    /// `1`.
    Constant,
    /// `1 / max(1, s)`. Source: Zhang et al., "Staleness-aware async-SGD for distributed deep
    /// learning" (IJCAI 2016), equation 6.
    Inverse,
    /// `(1 + s)^(-1/2)`. Source: Xie, Koyejo and Gupta, "Asynchronous federated optimization"
    /// (2019), section 5.2 (polynomial with a = 1/2), and FedBuff.
    InverseRoot,
}

impl StalenessWeight {
    /// The factor, in (0, 1]; without powers, so the same on every machine.
    pub fn of(self, staleness: u64) -> f64 {
        let s = staleness as f64;
        match self {
            Self::Constant => 1.0,
            Self::Inverse => 1.0 / s.max(1.0),
            Self::InverseRoot => 1.0 / (1.0 + s).sqrt(),
        }
    }
}

/// DC-ASGD: estimates the gradient at the present parameters from a late one.
///
/// ```text
/// g' = g + lambda g * g * (x - x_old)
/// ```
///
/// element by element: a first-order Taylor step with the squared gradient for the Hessian's
/// diagonal. Shapes: `[len]`, f32. `lambda` has no unit. It needs x_old, at which the sender
/// computed g, so the center keeps its last versions. Source: Zheng et al., "Asynchronous
/// stochastic gradient descent with delay compensation" (ICML 2017), equation 10 (constant lambda).
/// Special cases: lambda 0 or nothing moved: g itself.
///
/// # Panics
/// If the lengths differ.
pub fn compensate_delay(gradient: &mut [f32], x: &[f32], x_old: &[f32], lambda: f32) {
    assert!(gradient.len() == x.len() && x.len() == x_old.len());
    for ((g, x), old) in gradient.iter_mut().zip(x).zip(x_old) {
        *g += lambda * *g * *g * (x - old);
    }
}
