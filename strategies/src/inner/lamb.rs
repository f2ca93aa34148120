//! LAMB on flat slices: Adam whose step is proportional to the norm of the tensor.

use super::InnerOptimizer;
use super::kind::{BETAS, EPS, InnerSpec, decay, lr};
use super::optimizer::{Kept, Matrix, Method, bias, matrices, whole};
use crate::aggregate::norm;
use std::ops::Range;

pub(super) const SPEC: InnerSpec = InnerSpec {
    name: "lamb",
    summary: "Adam with steps proportional to the norm of each tensor",
    equation: "u = m^ / (sqrt(v^) + eps) + decay x, x' = x - lr (||x|| / ||u||) u, tensor by tensor",
    source: "You et al., ICLR 2020",
    parameters: &[lr(0.001), BETAS, EPS, decay(0.01)],
    needs_shapes: true,
    counts_steps: true,
    build: |kind, layout| {
        let [lr, eps, weight_decay] = ["lr", "eps", "weight_decay"].map(|key| kind.single(key));
        let method = Lamb {
            lr,
            betas: kind.betas(),
            eps,
            weight_decay,
            tensors: matrices(layout),
            direction: Vec::new(),
        };
        InnerOptimizer::new(layout.len(), 2, method)
    },
};

/// LAMB.
///
/// ```text
/// m' = beta_1 m + (1 - beta_1) g,   v' = beta_2 v + (1 - beta_2) g^2
/// u  = (m' / (1 - beta_1^t)) / (sqrt(v' / (1 - beta_2^t)) + eps) + weight_decay x
/// x' = x - lr (||x|| / ||u||) u
/// ```
///
/// with the norms over one tensor, and the quotient 1 where one of them is zero. Shapes: `[len]`,
/// f32; the state is m, then v: twice the parameters; its pieces must be whole tensors. Source: You
/// et al., "Large batch optimization for deep learning: training BERT in 76 minutes" (ICLR 2020),
/// algorithm 2 with phi the identity. Special case: a tensor of zeros takes Adam's step.
struct Lamb {
    lr: f32,
    betas: [f32; 2],
    eps: f32,
    weight_decay: f32,
    tensors: Vec<Matrix>,
    direction: Vec<f32>,
}

impl Method for Lamb {
    fn step(&mut self, kept: &mut Kept, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        let ([beta_1, beta_2], eps) = (self.betas, self.eps);
        let scale = (1.0 / bias(beta_1, kept.step())) as f32;
        let root_scale = (1.0 / bias(beta_2, kept.step()).sqrt()) as f32;
        let (lr, decay) = kept.rates(self.lr, self.weight_decay);
        let (first, second) = kept.halves();
        for tensor in whole(&self.tensors, &range) {
            let piece = tensor.range.start - range.start..tensor.range.end - range.start;
            let x = &mut params[piece.clone()];
            let moments = first[tensor.range.clone()]
                .iter_mut()
                .zip(&mut second[tensor.range.clone()]);
            self.direction.clear();
            for ((x, g), (m, v)) in x.iter().zip(&gradient[piece]).zip(moments) {
                *m = beta_1 * *m + (1.0 - beta_1) * g;
                *v = beta_2 * *v + (1.0 - beta_2) * g * g;
                let adam = scale * *m / (v.sqrt() * root_scale + eps);
                self.direction.push(adam + decay * x);
            }
            let (length, reach) = (norm(x), norm(&self.direction));
            let trust = if length > 0.0 && reach > 0.0 {
                length / reach
            } else {
                1.0
            };
            let rate = (f64::from(lr) * trust) as f32;
            x.iter_mut()
                .zip(&self.direction)
                .for_each(|(x, u)| *x -= rate * u);
        }
    }
}
