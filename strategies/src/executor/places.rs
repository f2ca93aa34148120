//! Places of fragments and shards in the exchanged values: the parameters, then their companion.

use super::host::WorkResult;
use crate::TensorSpec;
use crate::aggregate::{Quarantined, all_finite};
use murmurate_protocol::{FragmentId, WorkError};
use std::ops::Range;

/// The ranges of all fragments. Each is in the parameters or in the companion, not in both.
#[derive(Clone, Debug)]
pub(super) struct Places {
    fragments: Vec<Range<usize>>,
    /// Number of parameters; the companion begins there.
    parameters: usize,
    /// The tensors of the parameters.
    tensors: Vec<TensorSpec>,
}

impl Places {
    pub(super) const fn new(
        fragments: Vec<Range<usize>>,
        parameters: usize,
        tensors: Vec<TensorSpec>,
    ) -> Self {
        Self {
            fragments,
            parameters,
            tensors,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.fragments.len()
    }

    pub(super) const fn parameters(&self) -> usize {
        self.parameters
    }

    /// All fragments in order.
    pub(super) fn ranges(&self) -> &[Range<usize>] {
        &self.fragments
    }

    pub(super) fn of(&self, fragment: FragmentId) -> Range<usize> {
        self.fragments[usize::from(fragment.0)].clone()
    }

    pub(super) fn is_companion(&self, fragment: FragmentId) -> bool {
        self.of(fragment).start >= self.parameters
    }

    /// The first fragment of the companion, where there is one.
    pub(super) fn first_of_companion(&self) -> Option<usize> {
        let mut fragments = self.fragments.iter();
        fragments.position(|range| range.start >= self.parameters)
    }

    /// Part `at` of `parts` of a fragment's shard: shard `shard * parts + at` of `of * parts`. The
    /// parts of a shard are together as long as the shard.
    pub(super) fn part(
        &self,
        fragment: FragmentId,
        shard: u16,
        of: u16,
        at: usize,
        parts: usize,
    ) -> Range<usize> {
        let fragment = self.of(fragment);
        let (first, of) = (usize::from(shard) * parts + at, usize::from(of) * parts);
        let place = |i: usize| fragment.start + fragment.len() * i.min(of) / of.max(1);
        place(first)..place(first + 1)
    }

    /// Refuses values from `start` on that are not finite: they come from this peer's training, which is told
    /// the first tensor that has one.
    ///
    /// # Errors
    /// [`WorkError::Training`].
    pub(super) fn must_be_finite(&self, start: usize, values: &[f32]) -> WorkResult {
        if all_finite(values) {
            return Ok(());
        }
        let first = values.iter().position(|value| !value.is_finite());
        let first = start + first.unwrap_or_default();
        let mut tensors = self.tensors.iter();
        let tensor = tensors.find(|tensor| tensor.range().contains(&first));
        let place = tensor.map_or("state of the method".to_owned(), |tensor| {
            format!("tensor `{}`", tensor.name)
        });
        Err(WorkError::Training {
            reason: format!("{} in {place}", Quarantined::NotFinite),
        })
    }

    /// A shard of a fragment that is cut into `of` shards, whose lengths differ by at most one.
    pub(super) fn shard(&self, fragment: FragmentId, shard: u16, of: u16) -> Range<usize> {
        let fragment = self.of(fragment);
        let (len, of) = (fragment.len(), usize::from(of.max(1)));
        let at = |i: usize| fragment.start + len * i.min(of) / of;
        at(usize::from(shard))..at(usize::from(shard) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn a_value_that_is_not_finite_is_named_by_its_tensor() {
        let layout = Layout::new([("a", vec![2]), ("b.weight", vec![3])]);
        let places = Places::new(vec![0..5, 5..10], 5, layout.tensors().to_vec());
        assert!(places.must_be_finite(0, &[1.0; 10]).is_ok());
        for (start, bad, named) in [
            (0, 3, "tensor `b.weight`"),
            (1, 0, "tensor `a`"),
            (5, 2, "state of the method"),
        ] {
            let mut values = [0.0; 4];
            values[bad] = f32::NAN;
            let error = places.must_be_finite(start, &values).unwrap_err();
            let error = error.to_string();
            assert!(error.ends_with(named), "{error}");
        }
    }
}
