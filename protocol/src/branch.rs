//! Branches: what became of a swarm that was split into sides which cannot reach each other. Each
//! side goes on, and counts what it does, so that both can be merged by weight when they meet.

use crate::wire::WireError;
use crate::wire::check::{ok, weight};
use crate::limits::GROUP_MEMBERS_MAX;
use crate::{Digest, Round};
use serde::{Deserialize, Serialize};

/// The anchor that opened a group's round: all members of the group held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The round.
    pub round: Round,
    /// Hash of the anchor.
    pub anchor: Digest,
}

/// What a peer says of the branch that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// Where the last group began that peers of other sides were in.
    pub base: Base,
    /// Where the group before it began. A split may come between the two: then the last group is
    /// known to one side only.
    pub before: Option<Base>,
    /// Members of the branch's last group.
    pub members: u16,
    /// Sum of the weights that this side's rounds have decided since the base.
    pub weight: f64,
}

impl Branch {
    /// Whether both branches grew from the same state.
    pub fn meets(&self, other: &Self) -> bool {
        let bases = |branch: &Self| [Some(branch.base), branch.before];
        let theirs = bases(other);
        bases(self)
            .iter()
            .flatten()
            .any(|base| theirs.contains(&Some(*base)))
    }

    /// Checks counts and ranges.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        let members = usize::from(self.members);
        ok((1..=GROUP_MEMBERS_MAX).contains(&members), "branch.members")?;
        weight(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(round: u64) -> Base {
        Base {
            round: Round(round),
            anchor: Digest::of(&round.to_le_bytes()),
        }
    }

    fn branch(now: u64, before: Option<u64>) -> Branch {
        Branch {
            base: base(now),
            before: before.map(base),
            members: 2,
            weight: 3.0,
        }
    }

    #[test]
    fn branches_meet_if_they_share_one_of_two_bases() {
        for (one, other, meet) in [
            (branch(7, Some(6)), branch(7, Some(6)), true),
            // The last proposal reached one side only.
            (branch(8, Some(7)), branch(7, Some(6)), true),
            (branch(9, Some(8)), branch(7, Some(6)), false),
            (branch(0, None), branch(0, None), true),
            (branch(0, None), branch(1, None), false),
        ] {
            assert_eq!(one.meets(&other), meet, "{one:?} {other:?}");
            assert_eq!(other.meets(&one), meet, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_branch_of_no_members_or_of_an_absurd_weight_is_refused() {
        let good = branch(7, None);
        assert!(good.check().is_ok());
        for bad in [
            Branch { members: 0, ..good },
            Branch { members: 65, ..good },
            Branch { weight: -1.0, ..good },
            Branch { weight: f64::NAN, ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
