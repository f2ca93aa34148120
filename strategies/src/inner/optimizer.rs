//! What an inner optimizer is, the state that it keeps between inner steps, and the tensors that some see as
//! matrices.

use super::StepRule;
use crate::Layout;
use crate::state::{StateError, StateSink, StateSource};
use std::ops::Range;

/// Takes one inner step on flat parameters.
pub trait InnerOptimizer: Send {
    /// The state that it keeps between inner steps.
    fn kept(&self) -> &Kept;

    /// The state, to be changed.
    fn kept_mut(&mut self) -> &mut Kept;

    /// Applies the gradient of a piece that decays as a whole or not at all (`kept().decays`).
    fn step(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]);

    /// Makes of this peer's gradient what the optimizer takes the mean of: usually the gradient itself.
    fn outgoing(&self, _range: Range<usize>, _gradient: &mut [f32]) {}

    /// Set where it takes the mean of momenta.
    fn takes_momenta(&self) -> bool {
        false
    }

    /// Sets the rule of the inner steps from here on.
    fn set_rule(&mut self, rule: StepRule) {
        self.kept_mut().rule = rule;
    }

    /// Applies the gradient of one piece: `range` is its place in the flat parameters. Within one
    /// inner step each piece comes once, in any order.
    ///
    /// # Panics
    /// If the lengths differ.
    fn apply(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        assert_eq!(params.len(), range.len(), "parameters of the piece");
        assert_eq!(gradient.len(), range.len(), "gradient of the piece");
        let start = range.start;
        for (part, decays) in self.kept().rule.parts(&range) {
            self.kept_mut().decays = decays;
            let of = part.start - start..part.end - start;
            self.step(part, &mut params[of.clone()], &gradient[of]);
        }
    }

    /// f32 per parameter that it keeps.
    fn state_multiple(&self) -> usize {
        self.kept().multiple
    }

    /// Opens the next inner step: advances the step count before the pieces are applied.
    fn begin_step(&mut self) {
        self.kept_mut().steps += 1;
    }

    /// Inner steps taken, for bias correction.
    fn step_count(&self) -> u64 {
        self.kept().steps
    }

    /// Sets the inner steps taken, after a state transfer.
    fn set_step_count(&mut self, steps: u64) {
        self.kept_mut().steps = steps;
    }

    /// The state, `state_multiple` runs of the whole parameters' length, back to back.
    fn state(&self) -> &[f32] {
        &self.kept().values
    }

    /// The state, to be written into.
    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.kept_mut().values
    }

    /// Writes state and step count as `{prefix}.state` and `{prefix}.steps`.
    ///
    /// # Errors
    /// The sink's.
    fn save(&self, prefix: &str, sink: &mut dyn StateSink) -> Result<(), StateError> {
        sink.bytes(&format!("{prefix}.steps"), &self.step_count().to_le_bytes())?;
        match self.state() {
            [] => Ok(()),
            state => sink.tensor(&format!("{prefix}.state"), state),
        }
    }

    /// Takes back what [`InnerOptimizer::save`] wrote.
    ///
    /// # Errors
    /// When something is missing or has another length; nothing has changed then.
    fn load(&mut self, prefix: &str, source: &dyn StateSource) -> Result<(), StateError> {
        let name = format!("{prefix}.steps");
        let bytes = source.bytes(&name)?;
        let steps = <[u8; 8]>::try_from(bytes.as_slice()).map_err(|_| StateError::Malformed {
            name,
            reason: format!("{} bytes instead of 8", bytes.len()),
        })?;
        match self.state_mut() {
            [] => {}
            state => source.tensor(&format!("{prefix}.state"), state)?,
        }
        self.set_step_count(u64::from_le_bytes(steps));
        Ok(())
    }
}

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
    /// Set while the piece that is being stepped decays.
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

/// One tensor as a matrix: the first dimension by all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) range: Range<usize>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// The tensors of a layout in order.
pub(super) fn matrices(layout: &Layout) -> Vec<Matrix> {
    let tensors = layout.tensors().iter().filter(|tensor| !tensor.is_empty());
    tensors
        .map(|tensor| {
            let rows = match tensor.shape.as_slice() {
                [] | [_] => 1,
                [first, ..] => *first as usize,
            };
            Matrix {
                range: tensor.range(),
                rows,
                columns: tensor.len() / rows,
            }
        })
        .collect()
}

/// The tensors in `piece`, which must contain only whole ones.
///
/// # Panics
/// If a border of the piece is inside a tensor: the norm of a part would be wrong.
pub(super) fn whole<'a>(
    tensors: &'a [Matrix],
    piece: &Range<usize>,
) -> impl Iterator<Item = &'a Matrix> {
    let from = tensors.partition_point(|tensor| tensor.range.start < piece.start);
    let to = tensors.partition_point(|tensor| tensor.range.start < piece.end);
    let inside = &tensors[from..to];
    let covered: usize = inside.iter().map(|tensor| tensor.range.len()).sum();
    assert_eq!(covered, piece.len(), "a piece of whole tensors");
    inside.iter()
}
