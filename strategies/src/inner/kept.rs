//! The state that an inner optimizer keeps between inner steps.

use super::StepRule;

/// Values for each parameter, the count of inner steps, and the rule of the present one.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Runs of the parameters' length, one after another.
    pub values: Vec<f32>,
    /// Values for each parameter.
    pub multiple: usize,
    /// Inner steps taken.
    pub steps: u64,
    /// The rule of the present inner step.
    pub rule: StepRule,
    /// Whether the piece that is being stepped decays.
    pub decays: bool,
}

impl Kept {
    /// Zeros: `multiple` values for each of `len` parameters.
    pub fn zeros(len: usize, multiple: usize) -> Self {
        Self {
            values: vec![0.0; len * multiple],
            multiple,
            steps: 0,
            rule: StepRule::default(),
            decays: true,
        }
    }

    /// A learning rate with the factor of the present inner step.
    pub(super) fn scaled(&self, lr: f32) -> f32 {
        lr * self.rule.rate as f32
    }

    /// The weight decay of the piece that is being stepped.
    pub(super) const fn decay(&self, weight_decay: f32) -> f32 {
        if self.decays { weight_decay } else { 0.0 }
    }

    /// The two runs of a state with two values for each parameter, such as Adam's moments.
    pub fn halves(&mut self) -> (&mut [f32], &mut [f32]) {
        let len = self.values.len() / 2;
        self.values.split_at_mut(len)
    }
}
