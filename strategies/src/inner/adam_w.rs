//! AdamW on flat slices: Adam with decoupled weight decay. No AMSGrad.

use super::kind::{BETAS, EPS, InnerSpec, decay, lr};
use super::{InnerOptimizer, Kept};
use std::ops::Range;

pub(super) const SPEC: InnerSpec = InnerSpec {
    name: "adam-w",
    summary: "Adam with decoupled decay",
    equation: "m' = b1 m + (1 - b1) g, v' = b2 v + (1 - b2) g^2, x' = x - lr (m^ / (sqrt(v^) + eps) + decay x), ^: over 1 - b^t",
    source: "Loshchilov and Hutter, ICLR 2019",
    parameters: &[lr(0.001), BETAS, EPS, decay(0.01)],
    needs_shapes: false,
    counts_steps: true,
    build: |kind, layout| {
        let [lr, eps, decay] = ["lr", "eps", "weight_decay"].map(|key| kind.single(key));
        Box::new(AdamW::new(layout.len(), lr, kind.betas(), eps, decay))
    },
};

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
#[derive(Clone, Debug)]
pub struct AdamW {
    lr: f32,
    beta_1: f32,
    beta_2: f32,
    eps: f32,
    weight_decay: f32,
    kept: Kept,
}

impl AdamW {
    /// For `len` parameters.
    pub fn new(
        len: usize,
        lr: f32,
        [beta_1, beta_2]: [f32; 2],
        eps: f32,
        weight_decay: f32,
    ) -> Self {
        Self {
            lr,
            beta_1,
            beta_2,
            eps,
            weight_decay,
            kept: Kept::zeros(len, 2),
        }
    }

    /// `1 - beta^t`.
    fn correction(&self, beta: f32) -> f64 {
        1.0 - power(f64::from(beta), self.kept.steps.max(1))
    }
}

impl InnerOptimizer for AdamW {
    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn kept_mut(&mut self) -> &mut Kept {
        &mut self.kept
    }

    fn step(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        let (beta_1, beta_2, eps) = (self.beta_1, self.beta_2, self.eps);
        let (lr, decay) = (
            self.kept.scaled(self.lr),
            self.kept.decay(self.weight_decay),
        );
        let step_size = (f64::from(lr) / self.correction(beta_1)) as f32;
        let root_scale = (1.0 / self.correction(beta_2).sqrt()) as f32;
        let shrink = 1.0 - lr * decay;
        let (first, second) = self.kept.halves();
        let pieces = params.iter_mut().zip(gradient);
        let moments = first[range.clone()].iter_mut().zip(&mut second[range]);
        for ((x, g), (m, v)) in pieces.zip(moments) {
            *m = beta_1 * *m + (1.0 - beta_1) * g;
            *v = beta_2 * *v + (1.0 - beta_2) * g * g;
            *x = shrink * *x - step_size * *m / (v.sqrt() * root_scale + eps);
        }
    }
}

/// `base^exponent` by squaring: `f64::powf` may differ in the last bit between machines, and peers
/// that apply the same mean gradient must hold the same bits.
pub(super) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
