//! LAMB on flat slices: Adam whose step is proportional to the norm of the tensor.

use super::InnerOptimizer;
use super::kind::{BETAS, EPS, InnerSpec, decay, lr};
use super::optimizer::{Piece, bias, matrices, whole};
use crate::aggregate::norm;

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
        let [beta_1, beta_2] = kind.betas();
        let (tensors, mut direction) = (matrices(layout), Vec::new());
        InnerOptimizer::new(layout.len(), 2, move |of: Piece<'_>| {
            let scale = (1.0 / bias(beta_1, of.kept.step())) as f32;
            let root_scale = (1.0 / bias(beta_2, of.kept.step()).sqrt()) as f32;
            let (lr, decay) = of.kept.rates(lr, weight_decay);
            let (first, second) = of.kept.halves();
            for tensor in whole(&tensors, &of.range) {
                let piece = tensor.range.start - of.range.start..tensor.range.end - of.range.start;
                let x = &mut of.params[piece.clone()];
                let moments = first[tensor.range.clone()]
                    .iter_mut()
                    .zip(&mut second[tensor.range.clone()]);
                direction.clear();
                for ((x, g), (m, v)) in x.iter().zip(&of.gradient[piece]).zip(moments) {
                    *m = beta_1 * *m + (1.0 - beta_1) * g;
                    *v = beta_2 * *v + (1.0 - beta_2) * g * g;
                    let adam = scale * *m / (v.sqrt() * root_scale + eps);
                    direction.push(adam + decay * x);
                }
                let (length, reach) = (norm(x), norm(&direction));
                let trust = if length > 0.0 && reach > 0.0 {
                    length / reach
                } else {
                    1.0
                };
                let rate = (f64::from(lr) * trust) as f32;
                x.iter_mut()
                    .zip(&direction)
                    .for_each(|(x, u)| *x -= rate * u);
            }
        })
    },
};
