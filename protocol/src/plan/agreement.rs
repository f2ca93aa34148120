//! What the members of a group expect of each other.

use serde::{Deserialize, Serialize};

/// What the members of a group expect of each other, where they agree. By default they crash and do
/// not lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreementPlan {
    /// How many lying members a group must survive. A group of n survives `min(liars, (n - 1) / 3)`.
    /// With any, members sign what they say, and a peer that catches up believes what has a proof or is
    /// said by more peers than may lie.
    pub liars: u16,
    /// The least number of contributions that are combined: with fewer the round is void. Zero and one
    /// are the same.
    pub contributions: u16,
}

impl AgreementPlan {
    /// Whether members sign their statements.
    pub const fn signs(&self) -> bool {
        self.liars > 0
    }

    /// How many of its last encoded bytes only say what is usual.
    pub(super) fn usual_bytes(&self) -> usize {
        let Self {
            liars,
            contributions,
        } = self;
        match (liars, contributions) {
            (0, 0) => size_of_val(liars) + size_of_val(contributions),
            (_, 0) => size_of_val(contributions),
            _ => 0,
        }
    }
}
