//! The links that the members of a group schedule by, in the words of the group's proposer.
//!
//! Members tell each other what they measured, and that arrives at different times. They need the same rates
//! to the bit, or they would not have the same trees. So the proposer of a group names the rates, all members
//! use its words, and the group's tag is a hash of them. A member that lies about its own links, or a proposer
//! that lies about all, costs time: every tree that follows from any rates sums up every contribution once.

use super::rates::LinkCodes;
use crate::Round;
use crate::wire::{WireError, check};
use serde::{Deserialize, Serialize};

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
        let codes = match codes.is_unknown() {
            true => Vec::new(),
            false => codes.written(),
        };
        Self { since, codes }
    }

    /// The codes for this number of members, if there are any.
    pub(crate) fn read(&self, members: usize) -> Option<LinkCodes> {
        LinkCodes::read(&self.codes, members).filter(|codes| !codes.is_unknown())
    }

    /// Checks what a proposer says in this round of this many members.
    pub(crate) fn check(&self, round: Round, members: usize) -> Result<(), WireError> {
        check::ok(self.since <= round, "links.since")?;
        let fits = self.codes.is_empty() || self.read(members).is_some();
        check::ok(fits, "links.codes")
    }
}

#[cfg(test)]
mod tests {
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
