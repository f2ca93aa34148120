//! Correction `quasi-global` (QG-DSGDm): a momentum estimated from the change of the mixed parameters.

use super::Correction;
use super::correction::{BETA, CorrectionSpec, Needs};

pub(super) const SPEC: CorrectionSpec = CorrectionSpec {
    name: "quasi-global",
    summary: "momentum from the change of the parameters over a round, mixing included",
    equation: "g' = g + beta m, m' = beta m + (1 - beta) (x - x') / (H lr), x and x' the parameters after two mixes",
    source: "Lin et al., ICML 2021",
    parameters: &[BETA],
    needs: Needs::Mixing,
    state_multiple: 2,
    build: |kind, len, lr| Some(Box::new(QuasiGlobal::new(len, kind.beta(), lr))),
};

/// Momentum from the change of the parameters over a whole round, mixing included.
///
/// ```text
/// x_half = x - lr (beta m + g)         sent: x_half
/// x'     = sum_j W[i][j] x_half_j
/// m'     = beta m + (1 - beta) (x - x') / lr
/// ```
///
/// Shapes: `[len]`, f32; state: m, and x until the mix is complete, two values per parameter. Sends
/// as much as gossip. The change contains the neighbours' gradients, so the momentum does not
/// follow the drift of the local data. Source: Lin et al., "Quasi-global momentum: accelerating
/// decentralized deep learning on heterogeneous data" (ICML 2021), algorithm 1, heavy ball with
/// `mu = beta`. Special cases: `beta = 0` is D-PSGD in its adapt-then-combine form; with K inner
/// steps between two mixes the change is divided by `K lr`, and `beta m` is part of each of the K
/// steps.
#[derive(Clone, Debug)]
pub struct QuasiGlobal {
    beta: f32,
    lr: f32,
    /// The momentum, then the parameters at the beginning of the round.
    kept: Vec<f32>,
}

impl QuasiGlobal {
    /// For `len` parameters and inner steps at rate `lr`.
    pub fn new(len: usize, beta: f32, lr: f32) -> Self {
        let kept = vec![0.0; 2 * len];
        Self { beta, lr, kept }
    }

    /// Renews the momentum of the piece at `offset`, whose parameters became `mix` after steps
    /// whose rates add up to `rate`.
    fn renew(&mut self, offset: usize, mix: &[f32], rate: f32) {
        let len = self.kept.len() / 2;
        let (momentum, before) = self.kept.split_at_mut(len);
        let piece = offset..offset + mix.len();
        let moved = before[piece.clone()].iter().zip(mix);
        for (m, (before, after)) in momentum[piece].iter_mut().zip(moved) {
            *m = self.beta * *m + (1.0 - self.beta) * (before - after) / rate;
        }
    }
}

impl Correction for QuasiGlobal {
    fn taken_over(&mut self, offset: usize, _: &[f32], taken: &[f32], _: bool, steps: u64) {
        // The very first parameters are not the result of a round: there is no change to learn from.
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
