//! Muon on flat slices: the momentum of each matrix is made orthogonal; vectors use AdamW.

use super::InnerOptimizer;
use super::kind::{InnerSpec, decay, lr, momentum};
use super::optimizer::{Matrix, Method, Piece, bias, matrices, whole};
use crate::aggregate::norm;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2};

pub(super) const SPEC: InnerSpec = InnerSpec {
    name: "muon",
    summary: "momentum made orthogonal, matrix by matrix",
    equation: "m' = mu m + g, O = U V^T of g + mu m' = U S V^T, x' = x - lr (0.2 sqrt(max(rows, columns)) O + decay x)",
    source: "Jordan et al. 2024; Liu et al., arXiv 2502.16982",
    parameters: &[lr(0.001), momentum(0.95), decay(0.0)],
    needs_shapes: true,
    counts_steps: true,
    build: |kind, layout| {
        let [lr, momentum, weight_decay] =
            ["lr", "momentum", "weight_decay"].map(|key| kind.single(key));
        let method = Muon {
            lr,
            momentum,
            weight_decay,
            tensors: matrices(layout),
        };
        InnerOptimizer::new(layout.len(), 2, method)
    },
};

/// The quintic of Newton-Schulz: `p(s) = a s + b s^3 + c s^5` moves singular values in (0, 1] near 1.
const QUINTIC: [f32; 3] = [3.4445, -4.7750, 2.0315];

/// Newton-Schulz iterations.
const ITERATIONS: usize = 5;

/// Second-moment decay and denominator of the AdamW part.
const BETA_2: f32 = 0.95;
const EPS: f32 = 1e-8;

/// Muon.
///
/// ```text
/// m' = momentum m + g,   u = g + momentum m'
/// O  = U V^T of u = U S V^T, nearly: X = u / ||u||_F, five times X' = a X + (b A + c A^2) X, A = X X^T
/// x' = x - lr (0.2 sqrt(max(rows, columns)) O + weight_decay x)
/// ```
///
/// for tensors of two or more dimensions (the first by all others); vectors take AdamW's step with
/// the same rates (m with `1 - momentum`, beta_2 = 0.95), which 0.2 sqrt(max) is matched to.
/// Singular values end between
/// 0.7 and 1.2, not at 1; the method accepts that. Shapes: `[len]`, f32; the state is m, then v (used for vectors
/// only): twice the parameters, and a scratch of the largest matrix. Its pieces must be whole
/// tensors. f32 sums in a fixed order. Source: Jordan et al., "Muon: an optimizer for hidden layers
/// in neural networks" (2024); the scale and the decay from Liu et al., "Muon is scalable for LLM
/// training" (2025), equation 4. Special case: a zero matrix does not move.
struct Muon {
    lr: f32,
    momentum: f32,
    weight_decay: f32,
    tensors: Vec<Matrix>,
}

impl Muon {
    /// A matrix's step.
    fn turn(
        &self,
        tensor: &Matrix,
        (lr, decay): (f32, f32),
        x: &mut [f32],
        gradient: &[f32],
        m: &mut [f32],
    ) {
        let mut u: Vec<f32> = Vec::with_capacity(x.len());
        for (m, g) in m.iter_mut().zip(gradient) {
            *m = self.momentum * *m + g;
            u.push(g + self.momentum * *m);
        }
        let scale = 0.2 * (tensor.rows.max(tensor.columns) as f32).sqrt();
        for (x, o) in x
            .iter_mut()
            .zip(orthogonal(&u, tensor.rows, tensor.columns))
        {
            *x -= lr * (scale * o + decay * *x);
        }
    }

    /// A vector's step.
    fn adam(
        &self,
        [bias, root_bias]: [f64; 2],
        (lr, decay): (f32, f32),
        x: &mut [f32],
        gradient: &[f32],
        moments: (&mut [f32], &mut [f32]),
    ) {
        let scale = (1.0 / bias) as f32;
        let root_scale = (1.0 / root_bias.sqrt()) as f32;
        let moments = moments.0.iter_mut().zip(moments.1);
        for ((x, g), (m, v)) in x.iter_mut().zip(gradient).zip(moments) {
            *m = self.momentum * *m + (1.0 - self.momentum) * g;
            *v = BETA_2 * *v + (1.0 - BETA_2) * g * g;
            let adam = scale * *m / (v.sqrt() * root_scale + EPS);
            *x -= lr * (adam + decay * *x);
        }
    }
}

/// The nearly orthogonal factor of a row-major matrix; zeros stay zeros.
///
/// The library that computes the products uses the CPU's fused multiply-add if there is one, so the
/// bits are the same on one machine and may differ between machines. That is allowed, because inner
/// steps of different peers need not agree.
pub fn orthogonal(u: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let length = norm(u);
    if length == 0.0 {
        return u.to_vec();
    }
    let shape = (rows, columns);
    let u = ArrayView2::from_shape(shape, u).expect("rows times columns are the values given");
    // The smaller Gram matrix: a tall matrix is worked on as its transpose, which is a view.
    let tall = rows > columns;
    let (u, small) = if tall {
        (u.reversed_axes(), columns)
    } else {
        (u, rows)
    };
    let shrink = (1.0 / length) as f32;
    let mut x = u.mapv(|u| u * shrink);
    let mut next = Array2::zeros(x.raw_dim());
    let [mut gram, mut mix] = [(); 2].map(|()| Array2::zeros((small, small)));
    let [a, b, c] = QUINTIC;
    for _ in 0..ITERATIONS {
        general_mat_mul(1.0, &x, &x.t(), 0.0, &mut gram);
        mix.assign(&gram);
        general_mat_mul(c, &gram, &gram, b, &mut mix);
        next.assign(&x);
        general_mat_mul(1.0, &mix, &x, a, &mut next);
        std::mem::swap(&mut x, &mut next);
    }
    let x = if tall { x.reversed_axes() } else { x };
    x.as_standard_layout()
        .into_owned()
        .into_raw_vec_and_offset()
        .0
}

impl Method for Muon {
    fn step(&mut self, of: Piece<'_>) {
        let rates = of.kept.rates(self.lr, self.weight_decay);
        let biases = [self.momentum, BETA_2].map(|beta| bias(beta, of.kept.step()));
        let (first, second) = of.kept.halves();
        for tensor in whole(&self.tensors, &of.range) {
            let piece = tensor.range.start - of.range.start..tensor.range.end - of.range.start;
            let (x, g) = (&mut of.params[piece.clone()], &of.gradient[piece]);
            let m = &mut first[tensor.range.clone()];
            if tensor.rows > 1 {
                self.turn(tensor, rates, x, g, m);
            } else {
                let v = &mut second[tensor.range.clone()];
                self.adam(biases, rates, x, g, (m, v));
            }
        }
    }
}
