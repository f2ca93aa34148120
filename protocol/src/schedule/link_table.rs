//! A table of measured links, and the bounds that follow from it.

use super::rates::{LinkCodes, code_of};
use crate::limits::{LINK_MBIT_MAX, SYNTHESIZED_MEMBERS_MAX};

/// Microseconds of a megabyte at one megabit per second.
pub(super) const MICROS_PER_MB: u64 = 8_000_000;

const BYTES_PER_MBIT: u64 = 125_000;

/// Bytes per second of a rate of 1 in a table of codes.
const CODE_UNIT: u64 = 128;

/// Measured links, in megabits per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTable {
    /// Row i, column j: from rank i to rank j. The diagonal is not used.
    rows: Vec<Vec<u32>>,
}

/// Why a table of links is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkTableError {
    /// Too few or too many rows.
    #[error("{found} rows: a table of links has 2 to {SYNTHESIZED_MEMBERS_MAX}")]
    Rows {
        /// How many it has.
        found: usize,
    },
    /// A row of another length.
    #[error("row {row} has {found} numbers: one for each of the {rows} rows")]
    Columns {
        /// The row, from zero.
        row: usize,
        /// Its numbers.
        found: usize,
        /// The rows.
        rows: usize,
    },
    /// A link without a rate, or faster than any.
    #[error("from {from} to {to}: {found} Mbit/s is not 1 to {LINK_MBIT_MAX}")]
    Rate {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// What the table says.
        found: u32,
    },
}

impl LinkTable {
    /// A table by its rows; the diagonal may have any value.
    ///
    /// # Errors
    /// When it is not square, has too many rows, or a link has no rate.
    pub fn new(rows: Vec<Vec<u32>>) -> Result<Self, LinkTableError> {
        let n = rows.len();
        if !(2..=SYNTHESIZED_MEMBERS_MAX).contains(&n) {
            return Err(LinkTableError::Rows { found: n });
        }
        for (from, row) in rows.iter().enumerate() {
            if row.len() != n {
                return Err(LinkTableError::Columns {
                    row: from,
                    found: row.len(),
                    rows: n,
                });
            }
            let bad =
                |(to, rate): &(usize, &u32)| *to != from && !(1..=LINK_MBIT_MAX).contains(*rate);
            if let Some((to, found)) = row.iter().enumerate().find(bad) {
                return Err(LinkTableError::Rate {
                    from,
                    to,
                    found: *found,
                });
            }
        }
        Ok(Self { rows })
    }

    /// Its rows.
    pub fn rows(&self) -> &[Vec<u32>] {
        &self.rows
    }

    pub(super) fn members(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rate(&self, from: usize, to: usize) -> u64 {
        u64::from(self.rows[from][to])
    }

    pub(super) fn out(&self, from: usize) -> u64 {
        let others = (0..self.members()).filter(|to| *to != from);
        others.map(|to| self.rate(from, to)).max().unwrap_or(1)
    }

    pub(super) fn into(&self, to: usize) -> u64 {
        let others = (0..self.members()).filter(|from| *from != to);
        others.map(|from| self.rate(from, to)).max().unwrap_or(1)
    }

    /// A table of codes, in 128 bytes per second: only ratios of its rates count, and [`LinkTable::least_of`].
    pub(super) fn of_codes(codes: &LinkCodes) -> Self {
        let n = codes.members();
        let rate = |from, to| u32::try_from(codes.rate(from, to) / CODE_UNIT).unwrap_or(u32::MAX);
        let row = |from| (0..n).map(move |to| if from == to { 0 } else { rate(from, to) });
        Self {
            rows: (0..n).map(|from| row(from).collect()).collect(),
        }
    }

    /// Microseconds of this number of bytes below which no packing of trees is, in a table of codes.
    pub(super) fn least_of(&self, bytes: u64) -> u64 {
        self.bound(bytes.saturating_mul(1_000_000 / CODE_UNIT))
    }

    /// Microseconds of a megabyte below which no packing of trees is.
    pub(super) fn least(&self) -> u64 {
        self.bound(MICROS_PER_MB)
    }

    /// The same for other units: what one of rate 1 needs for all.
    fn bound(&self, whole: u64) -> u64 {
        let n = self.members();
        let lines: u64 = (0..n).map(|rank| self.out(rank)).sum();
        let mut least = whole.saturating_mul(2 * (n as u64 - 1)) / lines;
        // Every proper subset: those without the last rank, and their complements.
        for half in 1..1u32 << (n - 1) {
            let all = (1u32 << n) - 1;
            for set in [half, all & !half] {
                let within = |rank: &usize| set >> rank & 1 == 1;
                let inside = || (0..n).filter(within);
                let outside = || (0..n).filter(|rank| !within(rank));
                let links = inside().flat_map(|from| outside().map(move |to| self.rate(from, to)));
                let leaves = links
                    .sum::<u64>()
                    .min(inside().map(|rank| self.out(rank)).sum())
                    .min(outside().map(|rank| self.into(rank)).sum());
                least = least.max(whole / leaves);
            }
        }
        least
    }
}

impl LinkCodes {
    /// The codes of a table that is given.
    pub fn of(table: &LinkTable) -> Self {
        let rate = |from, to| table.rate(from, to) * BYTES_PER_MBIT;
        Self::new(table.members(), |from, to| code_of(rate(from, to)))
    }
}
