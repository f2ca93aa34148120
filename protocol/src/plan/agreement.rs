//! What the members of a group expect of each other.

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
        let flat = Grouping::FLAT_BYTES;
        let before = match (liars, contributions) {
            _ if grouping.has_roll() => 0,
            (0, 0) => size_of_val(liars) + size_of_val(contributions) + flat,
            (_, 0) => size_of_val(contributions) + flat,
            _ => flat,
        };
        let before = match passes {
            Passes::One => Passes::BYTES + before,
            Passes::Two => 0,
        };
        let before = match weighing {
            Weighing::Samples => Weighing::BYTES + before,
            Weighing::Steps | Weighing::Equal => 0,
        };
        let before = match parts {
            0 => size_of_val(parts) + before,
            _ => 0,
        };
        let before = match scoring {
            None => Scoring::NONE_BYTES + before,
            Some(_) => 0,
        };
        let before = match ladder {
            None => Ladder::NONE_BYTES + before,
            Some(_) => 0,
        };
        if *whole {
            0
        } else {
            size_of_val(whole) + before
        }
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
