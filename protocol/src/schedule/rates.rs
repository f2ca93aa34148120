//! Rates of links as peers tell them and plans have them: one byte each.
//!
//! Code c > 0 is the rate 1 KiB/s 2^((c - 1) / 8), rounded down; 0 is a link that is not measured. So a code
//! is 9 % more than the one below it, and the largest is two terabytes a second.

use crate::Round;
use crate::limits::{LINK_MBIT_MAX, SYNTHESIZED_MEMBERS_MAX};
use crate::wire::{WireError, check};
use serde::{Deserialize, Serialize};

/// Codes of an octave.
const STEPS: [u64; 8] = [1024, 1117, 1218, 1328, 1448, 1579, 1722, 1878];

const fn rate_of(code: u8) -> u64 {
    let above = code.saturating_sub(1) as usize;
    STEPS[above % STEPS.len()] << (above / STEPS.len())
}

/// The code of the largest rate that is not above this one, or of the lowest.
pub(crate) fn code_of(bytes_per_second: u64) -> u8 {
    let (mut low, mut high) = (1, u8::MAX);
    while low < high {
        let middle = high - (high - low) / 2;
        if rate_of(middle) <= bytes_per_second {
            low = middle
        } else {
            high = middle - 1
        }
    }
    low
}

/// The codes of all links among a group's members, by rank; none where no link is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkCodes {
    members: u8,
    /// Row i, column j: from rank i to rank j.
    rows: [[u8; SYNTHESIZED_MEMBERS_MAX]; SYNTHESIZED_MEMBERS_MAX],
}

impl LinkCodes {
    /// Codes of this number of members; more than have trees are not told apart.
    pub(crate) fn new(members: usize, code: impl Fn(usize, usize) -> u8) -> Self {
        let mut this = Self::default();
        if members > SYNTHESIZED_MEMBERS_MAX {
            return this;
        }
        this.members = members as u8;
        for from in 0..members {
            for to in (0..members).filter(|to| *to != from) {
                this.rows[from][to] = code(from, to);
            }
        }
        this
    }

    /// Codes row by row, as a proposer names them; none if their number is no square of members.
    pub(crate) fn read(codes: &[u8], members: usize) -> Option<Self> {
        let whole = codes.len() == members * members && members <= SYNTHESIZED_MEMBERS_MAX;
        let at = |from: usize, to: usize| codes.get(from * members + to).copied().unwrap_or(0);
        let read = whole.then(|| Self::new(members, at))?;
        // A link from a member to itself would make two names of one table.
        (read.written() == codes).then_some(read)
    }

    /// The codes row by row.
    pub(crate) fn written(&self) -> Vec<u8> {
        let n = self.members();
        (0..n * n).map(|at| self.rows[at / n][at % n]).collect()
    }

    pub(crate) const fn members(&self) -> usize {
        self.members as usize
    }

    pub(crate) fn code(&self, from: usize, to: usize) -> u8 {
        self.rows[from][to]
    }

    /// Returns `true` if no link is known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.rows.iter().flatten().all(|code| *code == 0)
    }

    /// The same with links that are not known as fast as the fastest.
    pub(super) fn filled(&self) -> Self {
        let fastest = self.rows.iter().flatten().max().copied().unwrap_or(0);
        Self::new(self.members(), |from, to| match self.code(from, to) {
            0 => fastest.max(1),
            code => code,
        })
    }

    /// The rate of a link, in bytes per second.
    pub(super) fn rate(&self, from: usize, to: usize) -> u64 {
        rate_of(self.code(from, to))
    }

    /// What a peer's line carries into it: as much as its fastest link.
    pub(super) fn line_in(&self, to: usize) -> u64 {
        let others = (0..self.members()).filter(|from| *from != to);
        others.map(|from| self.rate(from, to)).max().unwrap_or(1)
    }

    pub(super) fn line_out(&self, from: usize) -> u64 {
        let others = (0..self.members()).filter(|to| *to != from);
        others.map(|to| self.rate(from, to)).max().unwrap_or(1)
    }
}

/// The links that the members of a group schedule by, in the words of the group's proposer.
///
/// Members tell each other what they measured, and that arrives at different times. They need the same rates
/// to the bit, or they would not have the same trees. So the proposer of a group names the rates, all members
/// use its words, and the group's tag is a hash of them. A member that lies about its own links, or a proposer
/// that lies about all, costs time: every tree that follows from any rates sums up every contribution once.
///
/// Rates of the links among a group's members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedLinks {
    /// The round since which members go by them.
    pub since: Round,
    /// A code for each link, row by row, from the members of the rows, in `PeerId` order; 0 is unknown. None
    /// at all where no link is known, or members are too many for trees.
    pub codes: Vec<u8>,
}

impl AgreedLinks {
    /// Such a statement, with no codes where none is known.
    pub(crate) fn new(since: Round, codes: &LinkCodes) -> Self {
        let codes = if codes.is_unknown() {
            Vec::new()
        } else {
            codes.written()
        };
        Self { since, codes }
    }

    /// The codes for this number of members, if there are any.
    pub(crate) fn read(&self, members: usize) -> Option<LinkCodes> {
        LinkCodes::read(&self.codes, members).filter(|codes| !codes.is_unknown())
    }

    pub(crate) fn check(&self, round: Round, members: usize) -> Result<(), WireError> {
        check::ok(self.since <= round, "links.since")?;
        let fits = self.codes.is_empty() || self.read(members).is_some();
        check::ok(fits, "links.codes")
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_largest_that_is_not_above_its_rate() {
        for code in 1..=u8::MAX {
            let rate = rate_of(code);
            assert_eq!(code_of(rate), code);
            assert_eq!(code_of(rate - 1), (code - 1).max(1));
            if let Some(next) = code.checked_add(1) {
                let ratio = rate_of(next) as f64 / rate as f64;
                // Eight of them are an octave; whole numbers of 1024 are within a thousandth of that.
                assert!(
                    (ratio / 2f64.powf(0.125) - 1.0).abs() < 1e-3,
                    "{code}: {ratio}"
                );
            }
        }
        assert_eq!((code_of(0), code_of(u64::MAX)), (1, u8::MAX));
        assert_eq!(rate_of(9), 2048);
    }

    #[test]
    fn a_table_survives_its_own_bytes_and_no_others_are_read() {
        let table = LinkCodes::new(3, |from, to| (10 * from + to) as u8);
        let bytes = table.written();
        assert_eq!(bytes, [0, 1, 2, 10, 0, 12, 20, 21, 0]);
        assert_eq!(LinkCodes::read(&bytes, 3), Some(table));
        assert_eq!(LinkCodes::read(&bytes, 4), None);
        let mut own = bytes;
        own[4] = 7;
        assert_eq!(LinkCodes::read(&own, 3), None);
        assert_eq!(LinkCodes::read(&[0; 289], 17), None);
    }

    #[test]
    fn a_link_that_is_not_measured_is_as_fast_as_the_fastest() {
        let table = LinkCodes::new(3, |from, _| [0, 40, 60][from]).filled();
        assert_eq!(
            [0, 1, 2].map(|rank| table.line_out(rank)),
            [60, 40, 60].map(rate_of)
        );
        assert_eq!(
            [0, 1, 2].map(|rank| table.line_in(rank)),
            [60, 60, 60].map(rate_of)
        );
    }
}

#[cfg(test)]
mod agreed_links_tests {
    use super::*;

    #[test]
    fn what_is_no_table_of_the_members_is_refused() {
        let links = |codes: &[u8]| AgreedLinks {
            since: Round(3),
            codes: codes.to_vec(),
        };
        let good = links(&[0, 7, 9, 0]);
        assert!(good.check(Round(3), 2).is_ok() && links(&[]).check(Round(4), 40).is_ok());
        assert!(good.check(Round(2), 2).is_err(), "not yet");
        assert!(good.check(Round(3), 3).is_err(), "of other members");
        for codes in [&[1, 7, 9, 0][..], &[0; 4], &[0, 7, 9], &[0; 17 * 17]] {
            assert!(links(codes).check(Round(9), 2).is_err(), "{codes:?}");
        }
    }
}
