//! Correction `scaffold` (SCAFFOLD): control variates remove the drift of the inner steps.

use super::correction::{CorrectionSpec, Needs};
use super::{Correction, Work};

pub(super) const SPEC: CorrectionSpec = CorrectionSpec {
    name: "scaffold",
    summary: "control variates against drift; their mean is sent beside the parameters",
    equation: "g' = g - c_i + c, c_i' = c_i - c + (a - x) / (H lr), c' = mean_i c_i'",
    source: "Karimireddy et al., ICML 2020",
    parameters: &[],
    needs: Needs::Mean,
    state_multiple: 3,
    build: |_, len, lr| Some(Box::new(Scaffold::new(len, lr))),
};

/// A peer's control variate `c_i` and the common one `c`.
///
/// ```text
/// inner step:  g' = g - c_i + c                 (uncorrected until c_i is known)
/// round's end: c_i' = c_i - c + (x - y) / (K lr), for K inner steps of plain SGD from x to y
/// exchanged:   c' = weighted mean of all c_i', the companion of the parameters
/// ```
///
/// When all peers take part, c is that of the paper. When some do not, c is the mean of those that
/// did and not a sum of changes, so peers that left do not affect it; the paper's sum would need
/// their count. A round without some peers therefore moves towards the optimum of the others, which
/// the paper's sampling avoids. A void round changes no `c_i`. Shapes: `[len]`, f32; state: `c_i`,
/// c and x, three values per parameter. Sends twice the bytes of local SGD. Source: Karimireddy et
/// al., "SCAFFOLD: stochastic controlled averaging for federated learning" (ICML 2020), algorithm
/// 1, equations 3 to 5, option II. Special cases: one peer is plain SGD; other inner optimizers are
/// refused, because only with plain SGD the change over `K lr` is a mean gradient.
#[derive(Clone, Debug)]
pub struct Scaffold {
    lr: f32,
    /// `c_i`, and behind it one flag: 1 once `c_i` is known.
    own: Vec<f32>,
    common: Vec<f32>,
    start: Vec<f32>,
}

impl Scaffold {
    /// For `len` parameters and inner steps at rate `lr`.
    pub fn new(len: usize, lr: f32) -> Self {
        Self {
            lr,
            own: vec![0.0; len + 1],
            common: vec![0.0; len],
            start: vec![0.0; len],
        }
    }

    fn known(&self) -> bool {
        self.own.last() == Some(&1.0)
    }
}

impl Correction for Scaffold {
    fn taken_over(&mut self, offset: usize, _: &[f32], taken: &[f32], _: bool, _: u64) {
        self.start[offset..offset + taken.len()].copy_from_slice(taken);
    }

    fn correct(&mut self, offset: usize, _: &[f32], gradient: &mut [f32]) {
        if !self.known() {
            return;
        }
        let variates = self.own[offset..].iter().zip(&self.common[offset..]);
        for (g, (own, common)) in gradient.iter_mut().zip(variates) {
            *g += common - own;
        }
    }

    fn companion_taken(&mut self, offset: usize, taken: &[f32]) {
        self.common[offset..offset + taken.len()].copy_from_slice(taken);
    }

    fn cut(&mut self, trained: &[f32], work: Work, companion: &mut [f32]) {
        let known = self.known();
        let (own, flag) = self.own.split_at_mut(trained.len());
        if work.steps > 0 {
            let scale = 1.0 / (work.steps as f32 * self.lr);
            let moved = self.start.iter_mut().zip(trained);
            for ((own, common), (x, y)) in own.iter_mut().zip(&self.common).zip(moved) {
                let kept = if known { *own - common } else { 0.0 };
                *own = kept + scale * (*x - y);
                *x = *y;
            }
            flag.fill(1.0);
        }
        // A peer that has not trained yet sends the common variate, which leaves the mean as it is.
        let said = if known || work.steps > 0 {
            &*own
        } else {
            &self.common
        };
        companion.copy_from_slice(said);
    }

    fn state(&self) -> &[f32] {
        &self.own
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.own
    }
}
