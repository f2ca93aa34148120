//! The tracker of gradient tracking, momentum tracking, BEER and MoTEF.

use super::correction::{BETA, CorrectionSpec, Needs};
use super::{Correction, Work};
use crate::parameter::Parameter;

pub(super) const GRADIENTS: CorrectionSpec = CorrectionSpec {
    name: "gradient-tracking",
    summary: "a tracker of the mean gradient beside the parameters; with a coarse codec it is BEER",
    equation: "y = g + s, x' = W (x - lr y), s' = s + W y - y; W by replicas of both",
    source: "Nedic et al., SIAM J. Optim. 2017; compressed: Zhao et al., NeurIPS 2022",
    parameters: &[],
    needs: Needs::Flows,
    state_multiple: 2,
    build: |_, len, _| Some(Box::new(Tracker::new(len, 0.0))),
};

pub(super) const MOMENTA: CorrectionSpec = CorrectionSpec {
    name: "momentum-tracking",
    summary: "a tracker of the mean momentum beside the parameters",
    equation: "u' = beta u + g, y = u' + s, x' = W (x - lr y), s' = s + W y - y",
    source: "Takezawa et al., TMLR 2023",
    parameters: &[BETA],
    state_multiple: 3,
    build: |kind, len, _| Some(Box::new(Tracker::new(len, kind.beta()))),
    ..GRADIENTS
};

/// MoTEF; the paper's lambda is one less `beta`.
pub(super) const AVERAGES: CorrectionSpec = CorrectionSpec {
    name: "motef",
    summary: "a tracker of the mean of averaged gradients beside the parameters, for coarse codecs and noisy gradients",
    equation: "u' = beta u + (1 - beta) g, y = u' + s, x' = W (x - lr y), s' = s + W y - y; W by replicas of both",
    source: "Islamov et al., arXiv 2405.20114",
    parameters: &[Parameter {
        about: "the factor on the average in each step",
        ..BETA
    }],
    build: |kind, len, _| Some(Box::new(Tracker::averaging(len, kind.beta()))),
    ..MOMENTA
};

/// One peer's tracker y: its gradient, or momentum, plus the flow from the neighbours' trackers.
///
/// ```text
/// u' = beta u + g         (gradient tracking: u' = g; MoTEF: u' = beta u + (1 - beta) g)
/// y  = u' + s,   s = sum_j F_ij         g' = y in the inner step
/// sent: x - lr y  and  y                mixed: x' = x + rate sum_j w_ij (h_j - h_i),
///                                              F_ij' = F_ij + rate w_ij (k_j - k_i)
/// ```
///
/// with h and k the neighbours' replicas of both. The papers keep y itself. Here the flow s is
/// kept, the difference made by mixing (`s = W y - g` in gradient tracking), because the sum of all
/// s is zero even when peers resume or leave ([`Companion::Flows`](super::Companion::Flows)). At a
/// fixed point `u' = -s` everywhere, so the sum of all gradients is zero: the common optimum.
/// Shapes: `[len]`, f32; state: y and s, two values per parameter, and u with momentum. Sends twice
/// as much as gossip. Source: Nedic, Olshevsky and Shi, "Achieving geometric convergence for
/// distributed optimization over time-varying graphs" (SIAM J. Optim. 2017), algorithm 1
/// (adapt-then-combine in x); Takezawa et al., "Momentum tracking" (TMLR 2023), algorithm 1; Zhao
/// et al., "BEER" (NeurIPS 2022), algorithm 1; Islamov, Gao and Stich, "Near optimal decentralized
/// optimization with compression and momentum tracking" (arXiv 2405.20114), algorithm 1, MoTEF.
/// Special cases: with a lossy codec gradient tracking is BEER, with the gradient taken after the
/// mix instead of before, and the average of gradients is MoTEF, also with the step before the mix;
/// its average begins at zero, the paper's at a gradient. `beta = 0` is gradient tracking; one peer
/// is SGD. Plain SGD only, one inner step a round.
#[derive(Clone, Debug)]
pub struct Tracker {
    /// Zero is gradient tracking.
    beta: f32,
    /// The factor on a gradient that enters the momentum.
    gain: f32,
    /// Empty without momentum.
    momentum: Vec<f32>,
    flowed: Vec<f32>,
    tracker: Vec<f32>,
}

impl Tracker {
    /// For `len` parameters; beta in `[0, 1)`.
    pub fn new(len: usize, beta: f32) -> Self {
        Self {
            beta,
            gain: 1.0,
            momentum: vec![0.0; if beta > 0.0 { len } else { 0 }],
            flowed: vec![0.0; len],
            tracker: vec![0.0; len],
        }
    }

    /// For `len` parameters, of averages of the gradients; beta in `[0, 1)`.
    pub fn averaging(len: usize, beta: f32) -> Self {
        let gain = 1.0 - beta;
        Self {
            gain,
            ..Self::new(len, beta)
        }
    }
}

impl Correction for Tracker {
    fn taken_over(&mut self, _: usize, _: &[f32], _: &[f32], _: bool, _: u64) {}

    fn correct(&mut self, offset: usize, _: &[f32], gradient: &mut [f32]) {
        if let Some(momentum) = self.momentum.get_mut(offset..offset + gradient.len()) {
            for (g, u) in gradient.iter_mut().zip(momentum) {
                *u = self.beta * *u + self.gain * *g;
                *g = *u;
            }
        }
        let state = self.tracker[offset..]
            .iter_mut()
            .zip(&self.flowed[offset..]);
        for (g, (y, s)) in gradient.iter_mut().zip(state) {
            *g += s;
            *y = *g;
        }
    }

    fn companion_taken(&mut self, offset: usize, taken: &[f32]) {
        self.flowed[offset..offset + taken.len()].copy_from_slice(taken);
    }

    fn cut(&mut self, _: &[f32], _: Work, companion: &mut [f32]) {
        companion.copy_from_slice(&self.tracker);
    }

    fn state(&self) -> &[f32] {
        &self.momentum
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.momentum
    }
}
