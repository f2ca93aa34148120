//! Places of fragments and shards in the exchanged values: the parameters, then their companion.

use murmurate_protocol::FragmentId;
use std::ops::Range;

/// The ranges of all fragments. Each is in the parameters or in the companion, not in both.
#[derive(Clone, Debug)]
pub(super) struct Places {
    fragments: Vec<Range<usize>>,
    /// Number of parameters; the companion begins there.
    parameters: usize,
}

impl Places {
    pub(super) const fn new(fragments: Vec<Range<usize>>, parameters: usize) -> Self {
        Self {
            fragments,
            parameters,
        }
    }

    /// Number of fragments.
    pub(super) const fn count(&self) -> usize {
        self.fragments.len()
    }

    /// Number of parameters.
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

    /// Whether a fragment belongs to the companion.
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
        (shard, of): (u16, u16),
        (at, parts): (usize, usize),
    ) -> Range<usize> {
        let fragment = self.of(fragment);
        let (first, of) = (usize::from(shard) * parts + at, usize::from(of) * parts);
        let place = |i: usize| fragment.start + fragment.len() * i.min(of) / of.max(1);
        place(first)..place(first + 1)
    }

    /// A shard of a fragment that is cut into `of` shards, whose lengths differ by at most one.
    pub(super) fn shard(&self, fragment: FragmentId, shard: u16, of: u16) -> Range<usize> {
        let fragment = self.of(fragment);
        let (len, of) = (fragment.len(), usize::from(of.max(1)));
        let at = |i: usize| fragment.start + len * i.min(of) / of;
        at(usize::from(shard))..at(usize::from(shard) + 1)
    }
}
