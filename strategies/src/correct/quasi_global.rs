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
    lr: f32,
    /// The momentum, then the parameters before.
    kept: Vec<f32>,
}

impl QuasiGlobal {
    /// For `len` parameters.
    pub fn new(len: usize, beta: f32, mu: f32) -> Self {
        Self {
            beta,
            mu,
            lr: 1.0,
            kept: vec![0.0; 2 * len],
        }
    }

    /// As a [`Correction`] of inner steps at this rate.
    pub fn at(self, lr: f32) -> Self {
        Self { lr, ..self }
    }

    /// Takes the inner step; `x` becomes what is sent.
    pub fn advance(&mut self, x: &mut [f32], gradient: &[f32], lr: f32) {
        let (momentum, before) = self.kept.split_at_mut(x.len());
        before.copy_from_slice(x);
        for ((x, g), m) in x.iter_mut().zip(gradient).zip(momentum) {
            *x -= lr * (self.beta * *m + g);
        }
    }

    /// Takes the mix, which is the new x, in.
    pub fn mixed(&mut self, mix: &[f32], lr: f32) {
        self.renew(0, mix, lr);
    }

    /// The momentum of the piece at `offset`, from how far its parameters moved in steps that add up
    /// to `rate`.
    fn renew(&mut self, offset: usize, mix: &[f32], rate: f32) {
        let len = self.kept.len() / 2;
        let (momentum, before) = self.kept.split_at_mut(len);
        let piece = offset..offset + mix.len();
        let moved = before[piece.clone()].iter().zip(mix);
        for (m, (before, after)) in momentum[piece].iter_mut().zip(moved) {
            *m = self.mu * *m + (1.0 - self.mu) * (before - after) / rate;
        }
    }
}

impl Correction for QuasiGlobal {
    fn taken_over(&mut self, offset: usize, _: &[f32], taken: &[f32], _: bool, steps: u64) {
        // The first parameters come from nowhere.
        if steps > 0 {
            self.renew(offset, taken, steps as f32 * self.lr);
        }
        let before = self.kept.len() / 2 + offset;
        self.kept[before..before + taken.len()].copy_from_slice(taken);
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        let momentum = &self.kept[offset..offset + values.len()];
        for (g, m) in gradient.iter_mut().zip(momentum) {
            *g += self.beta * m;
        }
    }

    fn state(&self) -> &[f32] {
        &self.kept
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.kept
    }
}
