//! LAMB on flat slices: Adam whose step is proportional to the norm of the tensor.

use super::InnerOptimizer;
use super::adam_w::power;
use super::tensors::{Matrix, matrices, whole};
use crate::Layout;
use crate::aggregate::norm;
use std::ops::Range;

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
#[derive(Clone, Debug)]
pub struct Lamb {
    lr: f32,
    betas: [f32; 2],
    eps: f32,
    weight_decay: f32,
    steps: u64,
    tensors: Vec<Matrix>,
    len: usize,
    moments: Vec<f32>,
    direction: Vec<f32>,
}

impl Lamb {
    /// For the parameters of `layout`.
    pub fn new(layout: &Layout, lr: f32, betas: [f32; 2], eps: f32, weight_decay: f32) -> Self {
        Self {
            lr,
            betas,
            eps,
            weight_decay,
            steps: 0,
            tensors: matrices(layout),
            len: layout.len(),
            moments: vec![0.0; 2 * layout.len()],
            direction: Vec::new(),
        }
    }
}

impl InnerOptimizer for Lamb {
    fn name(&self) -> &'static str {
        "lamb"
    }

    fn state_multiple(&self) -> usize {
        2
    }

    fn begin_step(&mut self) {
        self.steps += 1;
    }

    fn apply(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        assert_eq!(params.len(), range.len(), "parameters of the piece");
        assert_eq!(gradient.len(), range.len(), "gradient of the piece");
        let ([beta_1, beta_2], eps) = (self.betas, self.eps);
        let correction = |beta: f32| 1.0 - power(f64::from(beta), self.steps.max(1));
        let scale = (1.0 / correction(beta_1)) as f32;
        let root_scale = (1.0 / correction(beta_2).sqrt()) as f32;
        let (first, second) = self.moments.split_at_mut(self.len);
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
                self.direction.push(adam + self.weight_decay * x);
            }
            let (length, reach) = (norm(x), norm(&self.direction));
            let trust = if length > 0.0 && reach > 0.0 {
                length / reach
            } else {
                1.0
            };
            let rate = (f64::from(self.lr) * trust) as f32;
            x.iter_mut()
                .zip(&self.direction)
                .for_each(|(x, u)| *x -= rate * u);
        }
    }

    fn step_count(&self) -> u64 {
        self.steps
    }

    fn set_step_count(&mut self, steps: u64) {
        self.steps = steps;
    }

    fn state(&self) -> &[f32] {
        &self.moments
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.moments
    }
}
