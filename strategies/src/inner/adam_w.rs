//! AdamW on flat slices: Adam with decoupled weight decay. No AMSGrad.

use super::InnerOptimizer;
use super::kind::{BETAS, EPS, InnerSpec, decay, lr};
use super::optimizer::{Kept, Method, bias};
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
        let [lr, eps, weight_decay] = ["lr", "eps", "weight_decay"].map(|key| kind.single(key));
        let betas = kind.betas();
        let method = AdamW {
            lr,
            betas,
            eps,
            weight_decay,
        };
        InnerOptimizer::new(layout.len(), 2, method)
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
struct AdamW {
    lr: f32,
    betas: [f32; 2],
    eps: f32,
    weight_decay: f32,
}

impl Method for AdamW {
    fn step(&mut self, kept: &mut Kept, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        let ([beta_1, beta_2], eps) = (self.betas, self.eps);
        let (lr, decay) = kept.rates(self.lr, self.weight_decay);
        let step_size = (f64::from(lr) / bias(beta_1, kept.step())) as f32;
        let root_scale = (1.0 / bias(beta_2, kept.step()).sqrt()) as f32;
        let shrink = 1.0 - lr * decay;
        let (first, second) = kept.halves();
        let pieces = params.iter_mut().zip(gradient);
        let moments = first[range.clone()].iter_mut().zip(&mut second[range]);
        for ((x, g), (m, v)) in pieces.zip(moments) {
            *m = beta_1 * *m + (1.0 - beta_1) * g;
            *v = beta_2 * *v + (1.0 - beta_2) * g * g;
            *x = shrink * *x - step_size * *m / (v.sqrt() * root_scale + eps);
        }
    }
}
