//! Quasi-global momentum (QG-DSGDm): momentum of the whole from how the own parameters moved.

use super::Correction;

/// Momentum that is renewed from the difference of parameters over a whole inner step with mixing.
///
/// ```text
/// x_half = x - lr (beta m + g)         sent: x_half
/// x'     = sum_j W[i][j] x_half_j
/// m'     = mu m + (1 - mu) (x - x') / lr
/// ```
///
/// Shapes: `[len]`, f32; state m, and x until the mix is there: twice the parameters. Sends what gossip
/// sends. Heavy ball as in the paper's algorithm 1 with mu = beta. The difference contains the others'
/// gradients, so the momentum is not the local one's drift. Source: Lin et al., "Quasi-global momentum:
/// accelerating decentralized deep learning on heterogeneous data" (ICML 2021), algorithm 1. Special cases:
/// beta = 0 is D-PSGD in its adapt-then-combine form; with K inner steps between two mixes, the difference is
/// divided by K lr, and beta m is part of each of the K.
#[derive(Clone, Debug)]
pub struct QuasiGlobal {
    beta: f32,
    mu: f32,
    momentum: Vec<f32>,
    before: Vec<f32>,
    lr: f32,
}

impl QuasiGlobal {
    /// For `len` parameters.
    pub fn new(len: usize, beta: f32, mu: f32) -> Self {
        Self {
            beta,
            mu,
            momentum: vec![0.0; len],
            before: vec![0.0; len],
            lr: 1.0,
        }
    }

    /// As a [`Correction`] of inner steps at this rate.
    pub fn at(self, lr: f32) -> Self {
        Self { lr, ..self }
    }

    /// Takes the inner step; `x` becomes what is sent.
    pub fn advance(&mut self, x: &mut [f32], gradient: &[f32], lr: f32) {
        self.before.copy_from_slice(x);
        for ((x, g), m) in x.iter_mut().zip(gradient).zip(&self.momentum) {
            *x -= lr * (self.beta * m + g);
        }
    }

    /// Takes the mix, which is the new x, in.
    pub fn mixed(&mut self, mix: &[f32], lr: f32) {
        self.renew(0, mix, lr);
    }

    /// The momentum of the piece at `offset`, from how far its parameters moved in steps that add up
    /// to `rate`.
    fn renew(&mut self, offset: usize, mix: &[f32], rate: f32) {
        let piece = offset..offset + mix.len();
        let moved = self.before[piece.clone()].iter().zip(mix);
        for (m, (before, after)) in self.momentum[piece].iter_mut().zip(moved) {
            *m = self.mu * *m + (1.0 - self.mu) * (before - after) / rate;
        }
    }
}

impl Correction for QuasiGlobal {
    fn taken_over(&mut self, offset: usize, _: &[f32], taken: &[f32], _: bool, steps: u64) {
        // The first parameters, and those of a checkpoint, come from nowhere.
        if steps > 0 {
            self.renew(offset, taken, steps as f32 * self.lr);
        }
        self.before[offset..offset + taken.len()].copy_from_slice(taken);
    }

    fn correct(&self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        let momentum = &self.momentum[offset..offset + values.len()];
        for (g, m) in gradient.iter_mut().zip(momentum) {
            *g += self.beta * m;
        }
    }

    fn state(&self) -> &[f32] {
        &self.momentum
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.momentum
    }
}
