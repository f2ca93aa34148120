//! Late contributions at a parameter server: weights by staleness, and delay compensation. In an
//! all-reduce no contribution is late.

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
    /// `1` up to `b`, then `1 / (a (s - b) + 1)`. Source: as above (hinge).
    Hinge {
        /// Slope.
        a: f64,
        /// Staleness that costs nothing.
        b: f64,
    },
}

impl StalenessWeight {
    /// The factor, in (0, 1]; without powers, so the same on every machine.
    pub fn of(self, staleness: u64) -> f64 {
        let s = staleness as f64;
        match self {
            Self::Constant => 1.0,
            Self::Inverse => 1.0 / s.max(1.0),
            Self::InverseRoot => 1.0 / (1.0 + s).sqrt(),
            Self::Hinge { a, b } if s > b => 1.0 / (a * (s - b) + 1.0),
            Self::Hinge { .. } => 1.0,
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
