//! AdamW on flat slices: Adam with decoupled weight decay. No AMSGrad.
//!
//! 1-bit Adam and 0/1 Adam, the optimizer part: Adam whose second moment changes only in some inner
//! steps. Between those the step is linear in the momentum, so gradients may be compressed with
//! error feedback, which is the codec's part.

use super::InnerOptimizer;
use super::kind::{BETAS, EPS, InnerKind, InnerSpec, SENDS, Sends, decay, lr};
use super::optimizer::{Kept, Method, Piece, bias};
use crate::Layout;
use crate::parameter::{Number, Parameter, Range as Values};
use std::ops::Range;

/// AdamW.
///
/// ```text
/// m' = beta_1 * m + (1 - beta_1) * g
/// v' = beta_2 * v + (1 - beta_2) * g^2
/// x' = x - lr * weight_decay * x - lr * (m' / (1 - beta_1^t)) / (sqrt(v' / (1 - beta_2^t)) + eps)
/// ```
///
/// with t counted from one. Shapes: x, g, m, v: `[len]`, f32; the state is m, then v. Source:
/// Loshchilov and Hutter, "Decoupled weight decay regularization" (ICLR 2019), algorithm 2 with
/// the learning rate as the schedule multiplier of both terms (as deep-learning frameworks have
/// it); bias correction from Kingma and Ba, "Adam" (ICLR 2015), algorithm 1. Special cases:
/// `weight_decay = 0` is Adam; the first inner step moves by `lr * sign(g)` up to `eps`.
pub(super) const ADAM_W: InnerSpec = InnerSpec {
    name: "adam-w",
    summary: "Adam with decoupled decay",
    equation: "m' = b1 m + (1 - b1) g, v' = b2 v + (1 - b2) g^2, x' = x - lr (m^ / (sqrt(v^) + eps) + decay x), ^: over 1 - b^t",
    source: "Loshchilov and Hutter, ICLR 2019",
    parameters: &[lr(0.001), BETAS, EPS, decay(0.01)],
    needs_shapes: false,
    counts_steps: true,
    build: |kind, layout| {
        let [lr, eps, weight_decay] = ["lr", "eps", "weight_decay"].map(|key| kind.single(key));
        let [beta_1, beta_2] = kind.betas();
        InnerOptimizer::new(layout.len(), 2, move |of: Piece<'_>| {
            let (lr, decay) = of.kept.rates(lr, weight_decay);
            let step_size = (f64::from(lr) / bias(beta_1, of.kept.step())) as f32;
            let root_scale = (1.0 / bias(beta_2, of.kept.step()).sqrt()) as f32;
            let shrink = 1.0 - lr * decay;
            let (first, second) = of.kept.halves();
            let pieces = of.params.iter_mut().zip(of.gradient);
            let moments = first[of.range.clone()]
                .iter_mut()
                .zip(&mut second[of.range]);
            for ((x, g), (m, v)) in pieces.zip(moments) {
                *m = beta_1 * *m + (1.0 - beta_1) * g;
                *v = beta_2 * *v + (1.0 - beta_2) * g * g;
                *x = shrink * *x - step_size * *m / (v.sqrt() * root_scale + eps);
            }
        })
    },
};

pub(super) const ONE_BIT: InnerSpec = InnerSpec {
    name: "one-bit-adam",
    summary: "Adam whose second moment freezes",
    equation: "as adam-w without decay, v' = v after `freeze` inner steps",
    source: "Tang et al., ICML 2021",
    parameters: &[lr(0.001), BETAS, EPS, WARM_STEPS, SENDS],
    needs_shapes: false,
    counts_steps: true,
    build: |kind, layout| frozen(kind, layout, Freeze::After),
};

pub(super) const ZERO_ONE: InnerSpec = InnerSpec {
    name: "zero-one-adam",
    summary: "Adam whose second moment changes less and less often",
    equation: "as adam-w without decay; v changes at intervals that double after every `freeze` changes",
    source: "Lu et al., ICLR 2023",
    parameters: &[lr(0.001), BETAS, EPS, RENEWALS, SENDS],
    build: |kind, layout| frozen(kind, layout, Freeze::Doubling),
    ..ONE_BIT
};

const WARM_STEPS: Parameter = Parameter::new(
    "freeze",
    Values::Count(Number::Large, 1, 1_000_000_000),
    1000.0,
    "inner steps in which the second moment is renewed",
);

const RENEWALS: Parameter = Parameter::new(
    WARM_STEPS.name,
    WARM_STEPS.range,
    16.0,
    "renewals of the second moment before their distance doubles",
);

fn frozen(kind: &InnerKind, layout: &Layout, freeze: fn(u64) -> Freeze) -> InnerOptimizer {
    let [lr, eps] = ["lr", "eps"].map(|key| kind.single(key));
    let method = FrozenAdam {
        freeze: freeze(kind.count(WARM_STEPS.name) as u64),
        lr,
        betas: kind.betas(),
        eps,
        sends: kind.sends(),
    };
    InnerOptimizer::new(layout.len(), 2, method)
}

/// The inner steps (counted from one) in which the second moment changes.
#[derive(Clone, Copy)]
enum Freeze {
    /// 1-bit Adam: in the first inner steps, up to this count.
    After(u64),
    /// 0/1 Adam: at inner steps `k_0 = 1`, `k_(j+1) = k_j + 2^floor(j / kappa)`, at growing distances.
    Doubling(u64),
}

impl Freeze {
    /// Renewals up to and with inner step `t`, and whether `t` is one of them.
    fn renewals(self, t: u64) -> (u64, bool) {
        match self {
            Self::After(warm) => (t.min(warm), t <= warm),
            Self::Doubling(kappa) => {
                let (mut at, mut count) = (1u64, 0u64);
                let kappa = kappa.max(1);
                let mut last = 0;
                while at <= t {
                    last = at;
                    at = at.saturating_add(1u64 << (count / kappa).min(62));
                    count += 1;
                }
                (count, last == t)
            }
        }
    }
}

/// Adam with a second moment that is constant in most inner steps.
///
/// ```text
/// m' = beta_1 m + (1 - beta_1) g
/// v' = beta_2 v + (1 - beta_2) g^2 in the inner steps that Freeze names, else v
/// x' = x - lr (m' / (1 - beta_1^t)) / (sqrt(v' / (1 - beta_2^r)) + eps)
/// ```
///
/// Where peers send momenta, g is not there: the optimizer gets `m'`, the mean of `m_i' = beta_1 m + (1 -
/// beta_1) g_i` as codecs left it, and takes `g = (m' - beta_1 m) / (1 - beta_1)` for the second moment. Error
/// feedback then acts on momenta, which are smoother than gradients; without a loss nothing differs.
///
/// with r the number of changes so far. Shapes: `[len]`, f32; the state is m, then v: twice the
/// parameters. Source: Tang et al., "1-bit Adam: communication efficient large-scale training with
/// Adam's convergence speed" (ICML 2021), algorithm 1; Lu et al., "Maximizing communication
/// efficiency for large-scale training via 0/1 Adam" (ICLR 2023), algorithm 1, with the policy for
/// `T_v` of section 6 (kappa = 16). Both papers leave the bias correction out and warm the learning
/// rate up instead; with it the warm-up is exactly Adam. Special cases: `After(u64::MAX)` is Adam;
/// `After(0)` divides by eps alone and is refused by the grid.
struct FrozenAdam {
    freeze: Freeze,
    lr: f32,
    betas: [f32; 2],
    eps: f32,
    sends: Sends,
}

impl Method for FrozenAdam {
    fn takes_momenta(&self) -> bool {
        self.sends == Sends::Momenta
    }

    fn outgoing(&self, kept: &Kept, range: Range<usize>, gradient: &mut [f32]) {
        if self.takes_momenta() {
            let beta = self.betas[0];
            let momentum = &kept.values[range];
            for (g, m) in gradient.iter_mut().zip(momentum) {
                *g = beta * m + (1.0 - beta) * *g;
            }
        }
    }

    fn step(&mut self, of: Piece<'_>) {
        let ([beta_1, beta_2], eps) = (self.betas, self.eps);
        let (renewals, renew) = self.freeze.renewals(of.kept.step());
        let (lr, _) = of.kept.rates(self.lr, 0.0);
        let step_size = (f64::from(lr) / bias(beta_1, of.kept.step())) as f32;
        let root_scale = (1.0 / bias(beta_2, renewals.max(1)).sqrt()) as f32;
        let (first, second) = of.kept.halves();
        let second = &mut second[of.range.clone()];
        let first = &mut first[of.range];
        let momenta = self.sends == Sends::Momenta;
        if renew {
            let pairs = second.iter_mut().zip(&*first);
            for ((v, m), given) in pairs.zip(of.gradient) {
                let g = if momenta {
                    (given - beta_1 * m) / (1.0 - beta_1)
                } else {
                    *given
                };
                *v = beta_2 * *v + (1.0 - beta_2) * g * g;
            }
        }
        let moments = first.iter_mut().zip(second);
        for ((x, given), (m, v)) in of.params.iter_mut().zip(of.gradient).zip(moments) {
            *m = if momenta {
                *given
            } else {
                beta_1 * *m + (1.0 - beta_1) * given
            };
            *x -= step_size * *m / (v.sqrt() * root_scale + eps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewals_become_rarer() {
        let steps: Vec<u64> = (1..40)
            .filter(|t| Freeze::Doubling(2).renewals(*t).1)
            .collect();
        assert_eq!(steps, [1, 2, 3, 5, 7, 11, 15, 23, 31]);
        assert_eq!(Freeze::Doubling(2).renewals(12), (6, false));
        assert_eq!(Freeze::After(5).renewals(5), (5, true));
        assert_eq!(Freeze::After(5).renewals(6), (5, false));
    }
}
