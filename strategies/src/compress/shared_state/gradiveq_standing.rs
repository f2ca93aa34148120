//! What stands in common between the members of `gradiveq`, and which values it is about.
//!
//! f32: 1 where components were found and 0 where moments are summed, exchanges since then, the
//! number of runs, for each its start and its slices (two digits each), then for each its components
//! (one column after another) or its second moments.

use super::acp_sgd::hash;
use crate::compress::Matrix;
use crate::compress::low_rank::factors::between;

/// How values are cut into slices.
#[derive(Clone, Copy)]
pub(super) struct Slices {
    /// Values of a slice.
    pub(super) size: usize,
    /// Components that are kept.
    pub(super) kept: usize,
}

/// What stands in common.
pub(super) struct Standing<'a> {
    /// Its hash.
    pub(super) name: u64,
    /// Whether components were found; second moments are summed before.
    pub(super) found: bool,
    /// Exchanges since components were found, or in which moments were summed.
    pub(super) rounds: u32,
    /// The runs, each as a matrix with a slice in every row.
    pub(super) runs: Vec<Matrix>,
    /// For every run its components or moments.
    pub(super) values: &'a [f32],
}

/// The numbers before the runs, and those of a run.
pub(super) const HEAD: usize = 3;
pub(super) const NAMED: usize = 4;

/// Digits of places and counts, so that f32 represents them exactly.
pub(super) const DIGIT: usize = 1 << 16;

/// A number of two digits.
fn number([high, low]: [f32; 2]) -> usize {
    (high as usize)
        .saturating_mul(DIGIT)
        .saturating_add(low as usize)
}

impl Slices {
    /// The part of these values that is compressed, if there are enough of them.
    fn run(&self, values: core::ops::Range<usize>) -> Option<Matrix> {
        let rows = values.len() / self.size;
        (rows >= self.size && self.kept < self.size).then_some(Matrix {
            offset: values.start,
            rows,
            columns: self.size,
        })
    }

    /// The runs of `len` values with these matrices.
    pub(super) fn runs<'a>(
        &'a self,
        matrices: &'a [Matrix],
        len: usize,
    ) -> impl Iterator<Item = Matrix> {
        let inside = matrices.iter().map(|matrix| Some(matrix.range()));
        let parts = between(matrices, len).zip(inside.chain([None]));
        let parts = parts.flat_map(|(before, matrix)| [Some(before), matrix]);
        parts.flatten().filter_map(|part| self.run(part))
    }

    /// The run of `rows` slices from `offset` on, if it may stand after `next`.
    pub(super) fn named(
        &self,
        offset: usize,
        rows: usize,
        next: usize,
        len: usize,
    ) -> Option<Matrix> {
        let end = rows.checked_mul(self.size)?.checked_add(offset)?;
        let run = (offset >= next && end <= len).then(|| self.run(offset..end));
        run.flatten()
    }

    /// f32 that stand in common for a run.
    pub(super) const fn in_common(&self, found: bool) -> usize {
        self.size * if found { self.kept } else { self.size }
    }

    /// What stands in common of `len` values; `None` where it is nothing, or not of this codec.
    pub(super) fn standing<'a>(&self, shared: &'a [f32], len: usize) -> Option<Standing<'a>> {
        let ([found, rounds, count], mut rest) = shared.split_first_chunk::<HEAD>()?;
        let (mut runs, mut next) = (Vec::new(), 0);
        for _ in 0..*count as usize {
            let ([a, b, c, d], after) = rest.split_first_chunk::<NAMED>()?;
            let run = self.named(number([*a, *b]), number([*c, *d]), next, len)?;
            (rest, next) = (after, run.range().end);
            runs.push(run);
        }
        let found = *found == 1.0;
        (rest.len() == runs.len() * self.in_common(found)).then(|| Standing {
            name: hash(shared),
            found,
            rounds: *rounds as u32,
            runs,
            values: rest,
        })
    }
}
