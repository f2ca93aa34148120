//! What the members of a group expect of each other.

use crate::plan::Plan;
use crate::{Ladder, Scoring};
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
    /// How a swarm is cut into groups.
    pub grouping: Grouping,
    /// How often members contribute to a round.
    pub passes: Passes,
    /// What the weight of a contribution counts.
    pub weighing: Weighing,
    /// Equal parts of a fragment, of which each owner of a parameter server in step takes as many as its
    /// line carries; zero where every owner has one shard, all equal.
    pub parts: u16,
    /// Where members score contributions before they are merged: how. None where all are merged.
    pub scoring: Option<Scoring>,
    /// Where rounds choose their codec by measured waits: from which codecs. None where all have the configured
    /// one.
    pub ladder: Option<Ladder>,
    /// A group sums the contributions of all its members or of none: each is masked for exactly these members, and
    /// two sums that differ in one member would show what that one contributed.
    pub whole: bool,
}

/// What a member says of its contribution, and the weight of it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weighing {
    /// Samples behind it.
    #[default]
    Samples,
    /// Inner steps behind it: a whole number. Members are as fast as their machines, so a count may be further
    /// from the usual one than a number of samples.
    Steps,
    /// One for a contribution, whatever is behind it: no member counts for more.
    Equal,
}

impl Weighing {
    /// The weight of a contribution with these samples and inner steps behind it.
    pub(crate) fn weigh(self, samples: u64, steps: u64) -> f64 {
        match self {
            Self::Samples => samples as f64,
            Self::Steps => steps as f64,
            Self::Equal => f64::from(steps > 0),
        }
    }

    /// Returns `true` if a contribution may have this weight; zero says that its peer brings none.
    pub fn allows(self, weight: f64) -> bool {
        match self {
            Self::Samples => true,
            // Rows and branches bring the sums of their members' weights.
            Self::Steps | Self::Equal => {
                weight.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&weight)
            }
        }
    }

    const BYTES: usize = size_of::<u32>();
}

/// How often members contribute to one round of an exchange whose owners reduce shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Passes {
    /// Once: owners send back the mean.
    #[default]
    One,
    /// Twice: owners send a basis made of the first contributions, members encode second ones for it, and
    /// the mean of these is what the group agrees on.
    Two,
}

impl Passes {
    /// Members contribute a second time.
    pub const fn are_two(self) -> bool {
        matches!(self, Self::Two)
    }

    const BYTES: usize = size_of::<u32>();
}

/// How a swarm is cut into groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grouping {
    /// One group of at most 64; each round it forms again, and further peers follow it.
    #[default]
    Flat,
    /// The rows and columns of a [`Roll`](crate::Roll).
    Grid {
        /// Peers in a row; zero where the size of the swarm decides.
        row: u16,
    },
    /// Cells of a [`Roll`](crate::Roll), dealt along another axis in each round; no agreement between
    /// cells.
    Cells {
        /// Peers of a cell, from 2 to 64.
        cell: u16,
    },
    /// Random cells of a roll, others in each round; no agreement between cells.
    RandomCells {
        /// Peers of a cell at most, from 2 to 64.
        cell: u16,
    },
}

impl Grouping {
    /// Rows and columns of a roll exchange.
    pub const fn is_grid(self) -> bool {
        matches!(self, Self::Grid { .. })
    }

    /// Peers have places in a roll.
    pub const fn has_roll(self) -> bool {
        !matches!(self, Self::Flat)
    }

    /// Peers of a cell; `None` where there are no cells.
    pub const fn cell(self) -> Option<u16> {
        match self {
            Self::Cells { cell } | Self::RandomCells { cell } => Some(cell),
            Self::Flat | Self::Grid { .. } => None,
        }
    }

    /// Peers of a row or of a cell in a run's first roll; `None` without a roll.
    pub(crate) const fn first_row(self) -> Option<u16> {
        match self {
            Self::Grid { row } => Some(row),
            _ => self.cell(),
        }
    }

    const FLAT_BYTES: usize = size_of::<u32>();
}

impl AgreementPlan {
    /// How many of its last encoded bytes hold only usual values.
    pub(super) fn usual_bytes(&self) -> usize {
        let Self {
            liars,
            contributions,
            grouping,
            passes,
            weighing,
            parts,
            scoring,
            ladder,
            whole,
        } = self;
        // The last field first: what is behind an unusual value cannot be left out.
        let fields = [
            (!whole, size_of_val(whole)),
            (ladder.is_none(), Ladder::NONE_BYTES),
            (scoring.is_none(), Scoring::NONE_BYTES),
            (*parts == 0, size_of_val(parts)),
            (*weighing == Weighing::Samples, Weighing::BYTES),
            (!passes.are_two(), Passes::BYTES),
            (!grouping.has_roll(), Grouping::FLAT_BYTES),
            (*contributions == 0, size_of_val(contributions)),
            (*liars == 0, size_of_val(liars)),
        ];
        let usual = fields.iter().take_while(|(usual, _)| *usual);
        usual.map(|(_, bytes)| bytes).sum()
    }
}

/// How many members may lie, and how many must say the same for it to count. The rest of the
/// peer asks [`Tolerance`] and never counts with the number of liars itself.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::canonical;

    #[test]
    fn a_new_way_to_cut_a_swarm_changes_the_bytes_and_hashes_of_no_other() {
        let bytes = |grouping: Grouping| canonical(&grouping);
        assert_eq!(bytes(Grouping::Flat), [0, 0, 0, 0]);
        assert_eq!(bytes(Grouping::Grid { row: 5 }), [1, 0, 0, 0, 5, 0]);
        assert_eq!(bytes(Grouping::Cells { cell: 4 }), [2, 0, 0, 0, 4, 0]);
        assert_eq!(bytes(Grouping::RandomCells { cell: 4 }), [3, 0, 0, 0, 4, 0]);
    }
}
