//! What an inner optimizer is, the state that it keeps between inner steps, and the tensors that some see as
//! matrices.

use super::StepRule;
use crate::Layout;
use crate::state::{StateError, StateSink, StateSource};
use std::ops::Range;

/// A piece of the parameters that decays as a whole or not at all (`kept.decays`), and its gradient.
pub(super) struct Piece<'a> {
    pub(super) kept: &'a mut Kept,
    pub(super) range: Range<usize>,
    pub(super) params: &'a mut [f32],
    pub(super) gradient: &'a [f32],
}

/// The arithmetic of an inner optimizer. A closure is a step of gradients.
pub(super) trait Method: Send {
    /// Applies the gradient of a piece.
    fn step(&mut self, of: Piece<'_>);

    /// As [`InnerOptimizer::outgoing`].
    fn outgoing(&self, _kept: &Kept, _range: Range<usize>, _gradient: &mut [f32]) {}

    /// As [`InnerOptimizer::takes_momenta`].
    fn takes_momenta(&self) -> bool {
        false
    }
}

impl<F: FnMut(Piece<'_>) + Send> Method for F {
    fn step(&mut self, of: Piece<'_>) {
        self(of);
    }
}

/// Takes inner steps on flat parameters.
pub struct InnerOptimizer {
    method: Box<dyn Method>,
    kept: Kept,
}

impl InnerOptimizer {
    /// Keeps `multiple` zeros for each of `len` parameters.
    pub(super) fn new(len: usize, multiple: usize, method: impl Method + 'static) -> Self {
        Self {
            method: Box::new(method),
            kept: Kept {
                values: vec![0.0; len * multiple],
                multiple,
                steps: 0,
                rule: StepRule::default(),
                decays: true,
            },
        }
    }

    /// Makes of this peer's gradient what the optimizer takes the mean of: usually the gradient itself.
    pub fn outgoing(&self, range: Range<usize>, gradient: &mut [f32]) {
        self.method.outgoing(&self.kept, range, gradient);
    }

    /// Set where it takes the mean of momenta.
    pub fn takes_momenta(&self) -> bool {
        self.method.takes_momenta()
    }

    /// Sets the rule of the inner steps from here on.
    pub fn set_rule(&mut self, rule: StepRule) {
        self.kept.rule = rule;
    }

    /// Applies the gradient of one piece: `range` is its place in the flat parameters. Within one
    /// inner step each piece comes once, in any order.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn apply(&mut self, range: Range<usize>, params: &mut [f32], gradient: &[f32]) {
        assert_eq!(params.len(), range.len(), "parameters of the piece");
        assert_eq!(gradient.len(), range.len(), "gradient of the piece");
        let start = range.start;
        let (method, kept) = (&mut self.method, &mut self.kept);
        for (part, decays) in kept.rule.parts(&range) {
            kept.decays = decays;
            let of = part.start - start..part.end - start;
            method.step(Piece {
                kept,
                range: part,
                params: &mut params[of.clone()],
                gradient: &gradient[of],
            });
        }
    }

    /// f32 per parameter that it keeps.
    pub const fn state_multiple(&self) -> usize {
        self.kept.multiple
    }

    /// Opens the next inner step: advances the step count before the pieces are applied.
    pub const fn begin_step(&mut self) {
        self.kept.steps += 1;
    }

    /// Inner steps taken, for bias correction.
    pub const fn step_count(&self) -> u64 {
        self.kept.steps
    }

    /// Sets the inner steps taken, after a state transfer.
    pub const fn set_step_count(&mut self, steps: u64) {
        self.kept.steps = steps;
    }

    /// The state, `state_multiple` runs of the whole parameters' length, back to back.
    pub fn state(&self) -> &[f32] {
        &self.kept.values
    }

    /// The state, to be written into.
    pub fn state_mut(&mut self) -> &mut [f32] {
        &mut self.kept.values
    }

    /// Writes state and step count as `{prefix}.state` and `{prefix}.steps`.
    ///
    /// # Errors
    /// The sink's.
    pub fn save(&self, prefix: &str, sink: &mut dyn StateSink) -> Result<(), StateError> {
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
    pub fn load(&mut self, prefix: &str, source: &dyn StateSource) -> Result<(), StateError> {
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
pub(super) struct Kept {
    /// Runs of the parameters' length, one after another.
    pub(super) values: Vec<f32>,
    multiple: usize,
    steps: u64,
    rule: StepRule,
    /// Set while the piece that is being stepped decays.
    decays: bool,
}

impl Kept {
    /// A learning rate with the factor of the present inner step, and the weight decay of the piece that
    /// is being stepped.
    pub(super) fn rates(&self, lr: f32, weight_decay: f32) -> (f32, f32) {
        let decay = if self.decays { weight_decay } else { 0.0 };
        (lr * self.rule.rate as f32, decay)
    }

    /// The inner step, counted from one.
    pub(super) fn step(&self) -> u64 {
        self.steps.max(1)
    }

    /// The two runs of a state with two values for each parameter, such as Adam's moments.
    pub(super) fn halves(&mut self) -> (&mut [f32], &mut [f32]) {
        let len = self.values.len() / 2;
        self.values.split_at_mut(len)
    }
}

/// `1 - beta^t`: the bias of a moment after t inner steps. By squaring, because `f64::powf` may differ in
/// the last bit between machines, and peers that apply the same mean gradient must hold the same bits.
pub(super) fn bias(beta: f32, mut t: u64) -> f64 {
    let (mut base, mut power) = (f64::from(beta), 1.0);
    while t > 0 {
        if t & 1 == 1 {
            power *= base;
        }
        base *= base;
        t >>= 1;
    }
    1.0 - power
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
