//! Rows and columns over the places of a roll: who sums what for whom.
//!
//! Place p is in row p / g and column p mod g of a grid with g columns. A fragment is cut into g
//! shards. Each row sums shard s at its member in column s; the members of column s agree on the sum
//! over all rows; and every member hands its column's result to its row. So a peer talks to its row
//! and its column only, and an agreement never has more than [`GROUP_MEMBERS_MAX`] members.
//!
//! The last row may be short. Its shards of the columns that it lacks are summed by the row above.

use crate::limits::GROUP_MEMBERS_MAX;
use core::ops::Range;

/// Room for newcomers when the number of columns is chosen: one in four.
const ROOM: usize = 4;

/// How many times its share of a shard an owner may carry before more members own parts.
const OWNER_LOAD: usize = 8;

const PART_OWNERS_MIN: usize = 4;

/// The rows and columns of a number of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    peers: usize,
    columns: usize,
}

impl Grid {
    /// A grid of at least one peer; more columns than peers are cut.
    pub fn new(peers: usize, columns: usize) -> Self {
        let peers = peers.max(1);
        Self {
            peers,
            columns: columns.clamp(1, peers),
        }
    }

    /// The number of columns for a number of peers. `row` is what the plan asks for; zero leaves it
    /// open. `now` is the number so far, which stays while it fits, because another one gives
    /// every peer other neighbours.
    pub fn columns_for(peers: usize, row: u16, now: usize) -> usize {
        let least = peers.div_ceil(GROUP_MEMBERS_MAX);
        if row > 0 {
            return usize::from(row).max(least);
        }
        match now {
            now if now > 0 && (least..=2 * least.max(2)).contains(&now) => now,
            _ if now == 0 || peers <= GROUP_MEMBERS_MAX => least,
            _ => (peers + peers / ROOM).div_ceil(GROUP_MEMBERS_MAX),
        }
    }

    /// Number of peers.
    pub const fn peers(&self) -> usize {
        self.peers
    }

    /// Number of columns, g: peers in a full row, and shards of a fragment.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows, c.
    pub const fn rows(&self) -> usize {
        self.peers.div_ceil(self.columns)
    }

    /// The row of a place.
    pub const fn row_of(&self, place: usize) -> usize {
        place / self.columns
    }

    /// The column of a place.
    pub const fn column_of(&self, place: usize) -> usize {
        place % self.columns
    }

    /// The places of a row.
    pub fn row(&self, row: usize) -> Range<usize> {
        let first = row * self.columns;
        first..(first + self.columns).min(self.peers)
    }

    /// The places of a column, row by row.
    pub fn column(&self, column: usize) -> impl Iterator<Item = usize> + use<> {
        (column..self.peers).step_by(self.columns)
    }

    /// The place that sums a row's contributions to a column's shard.
    pub const fn owner(&self, row: usize, column: usize) -> usize {
        let place = row * self.columns + column;
        if place < self.peers || row == 0 {
            place
        } else {
            place - self.columns
        }
    }

    /// The places whose contributions a place sums: its row, and the short row below that has no
    /// member in its column.
    pub fn served(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let (row, column) = (self.row_of(place), self.column_of(place));
        let below = row + 1;
        let short = below < self.rows() && self.owner(below, column) == place;
        let extra = if short { self.row(below) } else { 0..0 };
        self.row(row).chain(extra)
    }

    /// Into how many parts a column cuts its shard, each with an owner: all members while that
    /// spreads the load, and few where a shard is small beside the model.
    ///
    /// An owner of one of o parts sends and receives c / (g o) models beyond what every member does.
    pub fn part_owners(&self, column: usize) -> usize {
        let members = self.column(column).count();
        let enough = (OWNER_LOAD * members).div_ceil(self.columns);
        enough.clamp(PART_OWNERS_MIN.min(members), members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contribution_is_summed_once_in_every_column() {
        for peers in 1..=300 {
            for columns in [1, 2, 3, 4, 9, 16, 33] {
                let grid = Grid::new(peers, columns);
                for column in 0..grid.columns() {
                    let mut seen = vec![0; peers];
                    for place in grid.column(column) {
                        grid.served(place).for_each(|from| seen[from] += 1);
                        for from in grid.served(place) {
                            assert_eq!(grid.owner(grid.row_of(from), column), place);
                        }
                    }
                    assert!(seen.iter().all(|n| *n == 1), "{grid:?} column {column}");
                }
            }
        }
    }

    #[test]
    fn no_column_is_larger_than_a_group() {
        let mut columns = 0;
        for peers in (1..=12_000).step_by(7) {
            columns = Grid::columns_for(peers, 0, columns);
            let grid = Grid::new(peers, columns);
            assert!(grid.rows() <= GROUP_MEMBERS_MAX, "{grid:?}");
            for column in [0, grid.columns() - 1] {
                let owners = grid.part_owners(column);
                assert!((1..=grid.column(column).count()).contains(&owners));
            }
        }
    }

    #[test]
    fn columns_stay_while_they_fit() {
        assert_eq!(Grid::columns_for(64, 0, 0), 1);
        assert_eq!(Grid::columns_for(1000, 0, 0), 16);
        assert_eq!(Grid::columns_for(1000, 0, 20), 20);
        assert_eq!(Grid::columns_for(1300, 0, 20), 26);
        assert_eq!(Grid::columns_for(9, 3, 0), 3);
        assert_eq!(Grid::columns_for(1000, 3, 3), 16, "a column holds no more");
    }
}
