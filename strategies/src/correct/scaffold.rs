//! SCAFFOLD: control variates take the drift out of the inner steps.

use super::{Correction, Work};

/// One peer's control variate and the common one.
///
/// ```text
/// inner step:  g' = g - c_i + c
/// round's end: c_i' = c_i - c + (anchor - y) / (K lr),   c' = c + mean over the peers (c_i' - c_i)
/// ```
///
/// with y the parameters after K inner steps of plain SGD at rate lr (option II). Shapes: `[len]`, f32; state
/// c_i and c, twice the parameters; sends the delta and `c_i' - c_i`: twice the bytes of local SGD. The mean of
/// all c_i stays c. Source: Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated
/// learning" (ICML 2020), algorithm 1, equations 3 to 5, with all peers in every round. Special case: one peer
/// is plain SGD.
#[derive(Clone, Debug)]
pub struct Scaffold {
    own: Vec<f32>,
    common: Vec<f32>,
}

impl Scaffold {
    /// For `len` parameters, with both variates zero.
    pub fn new(len: usize) -> Self {
        Self {
            own: vec![0.0; len],
            common: vec![0.0; len],
        }
    }

    /// Corrects the gradient of one inner step in place.
    pub fn correct(&self, gradient: &mut [f32]) {
        let variates = self.own.iter().zip(&self.common);
        for (g, (own, common)) in gradient.iter_mut().zip(variates) {
            *g += common - own;
        }
    }

    /// Renews the own variate after `steps` inner steps at rate `lr`; `change` becomes what is sent.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn renew(&mut self, anchor: &[f32], y: &[f32], steps: u64, lr: f32, change: &mut [f32]) {
        assert!(anchor.len() == y.len() && y.len() == change.len());
        let scale = 1.0 / (steps.max(1) as f32 * lr);
        let moved = anchor.iter().zip(y);
        let variates = self.own.iter_mut().zip(&self.common);
        for ((change, (a, y)), (own, common)) in change.iter_mut().zip(moved).zip(variates) {
            *change = scale * (a - y) - common;
            *own += *change;
        }
    }

    /// Takes the mean of all peers' changes in.
    pub fn agree(&mut self, mean_change: &[f32]) {
        let pairs = self.common.iter_mut().zip(mean_change);
        pairs.for_each(|(common, change)| *common += change);
    }

    /// The own variate.
    pub fn own(&self) -> &[f32] {
        &self.own
    }
}

/// SCAFFOLD as the train lane carries it out: the own variate is the companion of the parameters.
///
/// ```text
/// inner step:  g' = g - c_i + c                 (no correction before the own variate is known)
/// round's end: c_i' = c_i - c + (x - y) / (K lr), the mean gradient of the round's K inner steps from x to y
/// exchanged:   c' = weighted mean of all c_i'
/// ```
///
/// Where everybody takes part, c is that of [`Scaffold`]. Where somebody does not, c is the mean of those who
/// did and not a sum of changes, so that nothing is left in it of peers that are gone; the paper's sum would
/// need their count. So a round that lacks somebody moves towards the optimum of those who were there,
/// which the paper's sampling avoids. What became of a round's exchange changes no own variate. Shapes: `[len]`, f32; state c_i, c and x, three times the
/// parameters. Plain SGD only: K lr is what divides.
#[derive(Clone, Debug)]
pub struct Variates {
    lr: f32,
    /// The own variate, and one value behind it: 1 once it is known.
    own: Vec<f32>,
    common: Vec<f32>,
    start: Vec<f32>,
}

impl Variates {
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

impl Correction for Variates {
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
        // Whoever knows nothing yet moves the mean nowhere.
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
