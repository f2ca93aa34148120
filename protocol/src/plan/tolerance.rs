//! How many members may lie, and how many must say the same for it to count. The rest of the
//! peer asks [`Tolerance`] and never counts with the number of liars itself.

use crate::plan::{AgreementPlan, Plan};

/// The liars that a set of members survives. With none, members may crash but not lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tolerance {
    liars: usize,
}

impl Tolerance {
    pub(crate) const NONE: Self = Self { liars: 0 };

    /// That of a group of this size, where a run allows for this number: `min(liars, (n - 1) / 3)`.
    pub(crate) const fn of(liars: u16, members: usize) -> Self {
        let (allowed, third) = (liars as usize, members.saturating_sub(1) / 3);
        let liars = if allowed < third { allowed } else { third };
        Self { liars }
    }

    /// Any single member is believed.
    pub(crate) const fn is_none(self) -> bool {
        self.liars == 0
    }

    /// The least number of members that decides: `Q = floor((n + k) / 2) + 1`. Without liars that
    /// is a strict majority.
    ///
    /// Any two quorums share at least k + 1 members, so they share one that does not lie. With
    /// `n > 3k` the others are a quorum without the liars.
    pub(crate) const fn quorum(self, members: usize) -> usize {
        (members + self.liars) / 2 + 1
    }

    /// What this many members say, one of them says that does not lie.
    pub(crate) const fn believes(self, count: usize) -> bool {
        count >= self.believed_min()
    }

    /// The least number that [`Tolerance::believes`].
    pub(crate) const fn believed_min(self) -> usize {
        self.liars + 1
    }

    /// This many honest members are a quorum for somebody, if all liars say what suits them.
    pub(crate) const fn may_be(self, quorum: usize, honest: usize) -> bool {
        honest + self.liars >= quorum
    }

    /// Of claims in order, the furthest first: the first that is not further than an honest one.
    pub(crate) fn credible<T>(self, claims: &[T]) -> Option<&T> {
        claims.get(self.liars)
    }
}

impl AgreementPlan {
    /// Members sign their statements: some of them may lie.
    pub const fn signs(&self) -> bool {
        self.liars > 0
    }

    /// The least number of members of a group of this size that decides.
    pub fn quorum_of(&self, members: usize) -> usize {
        Tolerance::of(self.liars, members).quorum(members)
    }
}

impl Plan {
    pub(crate) const fn tolerance(&self, members: usize) -> Tolerance {
        Tolerance::of(self.agreement.liars, members)
    }

    /// The same for a peer that has just begun: its first links may be all the liars that the run
    /// allows for. A run that allows for as many as a group survives names no number: one is assumed.
    pub(crate) fn tolerance_at_first(&self, members: usize) -> Tolerance {
        let allowed = match self.agreement.liars {
            u16::MAX => 1,
            liars => usize::from(liars),
        };
        let liars = self.tolerance(members).liars.max(allowed);
        Tolerance { liars }
    }

    /// As [`AgreementPlan::quorum_of`].
    pub fn quorum_of(&self, members: usize) -> usize {
        self.agreement.quorum_of(members)
    }
}
