//! Outer optimizers `fed-adagrad`, `fed-adam` and `fed-yogi`: an adaptive step of the anchor along
//! the aggregated delta.

use super::kind::{Fragment, Method, Nature, OuterKind, OuterSpec, lr, momentum};
use crate::parameter::{Parameter, Range as Values};

pub(super) const ADAGRAD: OuterSpec = OuterSpec {
    name: "fed-adagrad",
    summary: "an adaptive step with the sum of all squares",
    equation: "m' = b m + (1 - b) D, v' = v + D^2, a' = a + lr m' / (sqrt(v') + eps)",
    parameters: &[lr(0.01), momentum(0.0), EPS],
    build: |kind| adaptive(kind, SecondMoment::Adagrad, [kind.single("momentum"), 0.0]),
    ..ADAM
};

pub(super) const ADAM: OuterSpec = OuterSpec {
    name: "fed-adam",
    summary: "an adaptive step, as Adam's",
    equation: "m' = b1 m + (1 - b1) D, v' = b2 v + (1 - b2) D^2, a' = a + lr m' / (sqrt(v') + eps)",
    source: "Reddi et al., ICLR 2021",
    parameters: &[lr(0.01), BETAS, EPS],
    nature: Nature::Agreed,
    unfit: |_| None,
    state_multiple: 2,
    build: |kind| adaptive(kind, SecondMoment::Adam, betas(kind)),
};

pub(super) const YOGI: OuterSpec = OuterSpec {
    name: "fed-yogi",
    summary: "an adaptive step that shrinks slowly",
    equation: "m' = b1 m + (1 - b1) D, v' = v - (1 - b2) D^2 sign(v - D^2), a' = a + lr m' / (sqrt(v') + eps)",
    build: |kind| adaptive(kind, SecondMoment::Yogi, betas(kind)),
    ..ADAM
};

const BETAS: Parameter = Parameter::new(
    "betas",
    Values::Pair([0.9, 0.99]),
    0.9,
    "decay of the two moments",
);

const EPS: Parameter = Parameter::new(
    "eps",
    Values::Above,
    0.001,
    "the degree of adaptivity, tau in the paper",
);

fn betas(kind: &OuterKind) -> [f32; 2] {
    kind.pair("betas").map(|beta| beta as f32)
}

fn adaptive(kind: &OuterKind, rule: SecondMoment, betas: [f32; 2]) -> Box<dyn Method> {
    let [lr, tau] = ["lr", "eps"].map(|key| kind.single(key));
    Box::new(FedOpt {
        rule,
        lr,
        betas,
        tau,
    })
}

/// How the second moment is computed from the squared delta.
#[derive(Clone, Copy)]
enum SecondMoment {
    /// `v' = v + delta^2`: never forgets.
    Adagrad,
    /// `v' = beta_2 v + (1 - beta_2) delta^2`.
    Adam,
    /// `v' = v - (1 - beta_2) delta^2 sign(v - delta^2)`: grows as Adam's, shrinks slower.
    Yogi,
}

/// FedOpt.
///
/// ```text
/// m'      = beta_1 m + (1 - beta_1) delta
/// v'      = by SecondMoment; v = tau^2 before the first round
/// anchor' = anchor + lr m' / (sqrt(v') + tau)
/// ```
///
/// No bias correction, as in the paper. Shapes: anchor, delta, m, v: `[len]`, f32; the state is m,
/// then v: twice the parameters. Source: Reddi et al., "Adaptive federated optimization" (ICLR
/// 2021), algorithm
/// 2. Special cases: tau far above all deltas with `lr = tau` and `beta_1 = 0` is the average up to
/// `delta / tau`; Adagrad does not use beta_2.
struct FedOpt {
    rule: SecondMoment,
    lr: f32,
    betas: [f32; 2],
    tau: f32,
}

impl FedOpt {
    /// One fragment, with the second moment's rule known to the compiler.
    fn step(&self, of: Fragment<'_>, second: impl Fn(f32, f32) -> f32) {
        let (lr, beta, tau) = (self.lr, self.betas[0], self.tau);
        let (first, second_moments) = of.state.split_at_mut(of.state.len() / 2);
        let moments = first[of.range.clone()]
            .iter_mut()
            .zip(&mut second_moments[of.range]);
        for ((a, d), (m, v)) in of.anchor.iter_mut().zip(&*of.delta).zip(moments) {
            *m = beta * *m + (1.0 - beta) * d;
            *v = second(*v, d * d);
            *a += lr * *m / (v.sqrt() + tau);
        }
    }
}

impl Method for FedOpt {
    fn apply(&mut self, of: Fragment<'_>) {
        let beta = self.betas[1];
        let sign = |x: f32| f32::from(u8::from(x > 0.0)) - f32::from(u8::from(x < 0.0));
        match self.rule {
            SecondMoment::Adagrad => self.step(of, |v, s| v + s),
            SecondMoment::Adam => self.step(of, |v, s| beta * v + (1.0 - beta) * s),
            SecondMoment::Yogi => self.step(of, |v, s| v - (1.0 - beta) * s * sign(v - s)),
        }
    }

    fn reset(&mut self, state: &mut [f32]) {
        let (first, second) = state.split_at_mut(state.len() / 2);
        first.fill(0.0);
        second.fill(self.tau * self.tau);
    }
}
