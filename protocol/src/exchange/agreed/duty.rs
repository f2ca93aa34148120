//! A shard that this peer reduces, and how far the reduction is.

use crate::{Attempt, Members};

/// Where the reduction of one shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Collecting,
    Combining,
    Encoding,
    Done,
}

/// What is being reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Contributions.
    First,
    /// Second contributions, for the basis that this peer made of the first ones.
    Second,
    /// This peer's scores of the others' contributions.
    Scores,
}

/// A shard that this peer reduces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duty {
    pub(super) attempt: Attempt,
    /// Members whose contribution is waited for.
    pub(super) expected: Members,
    /// Members whose contribution is in the reduction.
    pub(super) included: Members,
    pub(super) progress: Progress,
    pub(super) pass: Pass,
}

impl Duty {
    pub(super) fn new(attempt: Attempt, expected: Members) -> Self {
        Self {
            attempt,
            expected,
            included: Members::NONE,
            progress: Progress::Collecting,
            pass: Pass::First,
        }
    }

    /// This peer's contribution as it is, that is being encoded.
    pub(super) fn offer(me: usize) -> Self {
        Self {
            included: Members::one(me),
            progress: Progress::Encoding,
            ..Self::new(Attempt::FIRST, Members::NONE)
        }
    }

    pub(super) fn done(&self) -> bool {
        self.progress == Progress::Done
    }
}
