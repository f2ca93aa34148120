//! What a trainer does to the tensors of its model on the host.

use super::flat;
use crate::{Task, init};
use murmurate_strategies::TensorSpec;
use std::ops::Range;

/// Draws the initial values of every tensor.
pub(super) struct Initial<'a, T> {
    pub(super) task: &'a T,
    pub(super) seed: u64,
}

impl<T: Task> flat::Edit for Initial<'_, T> {
    fn wants(&self, _: &TensorSpec) -> bool {
        true
    }

    fn edit(&mut self, place: usize, spec: &TensorSpec, values: &mut [f32]) {
        self.task
            .initial(spec, values, &mut init::generator(self.seed, place));
    }
}

/// Passes the values of a range to a function.
pub(super) struct Visit<'a> {
    pub(super) range: Range<usize>,
    pub(super) f: &'a mut dyn FnMut(usize, &mut [f32]),
}

impl flat::Edit for Visit<'_> {
    fn wants(&self, spec: &TensorSpec) -> bool {
        let tensor = spec.range();
        tensor.start < self.range.end && self.range.start < tensor.end
    }

    fn edit(&mut self, _: usize, spec: &TensorSpec, values: &mut [f32]) {
        let tensor = spec.range();
        let start = self.range.start.max(tensor.start);
        let end = self.range.end.min(tensor.end);
        (self.f)(start, &mut values[start - tensor.start..end - tensor.start]);
    }
}
