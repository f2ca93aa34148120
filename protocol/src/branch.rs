//! Branches: the sides of a swarm that was split, which cannot reach each other. Each side goes on, and
//! sums the weights of its rounds, so that both can be merged by weight when they meet.

use crate::limits::{BRANCH_BASES, GROUP_MEMBERS_MAX, VIEW_PEERS_MAX};
use crate::wire::WireError;
use crate::wire::check::{ok, weight};
use crate::{Digest, PeerId, Round};
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
    /// Where this peer's last groups began in which peers of other sides were, newest first. A split
    /// may come in the middle of a group or its decision, so the newest one may be known to one side
    /// only.
    pub bases: [Option<Base>; BRANCH_BASES],
    /// Members of the branch's last group.
    pub members: u16,
    /// Sum of the weights that this side's rounds have decided since the newest base.
    pub weight: f64,
}

impl Branch {
    /// Returns `true` if both branches grew from the same state: they have a base in common.
    pub fn meets(&self, other: &Self) -> bool {
        let mut bases = self.bases.iter().flatten();
        bases.any(|base| other.bases.contains(&Some(*base)))
    }

    /// The round in which it began, in this peer's eyes.
    pub fn began(&self) -> Round {
        let newest = self.bases.iter().flatten().next();
        newest.map_or(Round(0), |base| base.round)
    }

    pub(crate) fn check(&self) -> Result<(), WireError> {
        let members = usize::from(self.members);
        ok((1..=GROUP_MEMBERS_MAX).contains(&members), "branch.members")?;
        weight(self.weight)
    }
}

/// What a checkpoint keeps of a split, so that sides which are all restarted know each other again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptSplit {
    /// The branch that the peer was in.
    pub branch: Branch,
    /// The peers that were missing from it.
    pub missing: Vec<PeerId>,
    /// The largest weight of a member of the peer's groups.
    pub heaviest: f64,
}

impl KeptSplit {
    pub(crate) fn check(&self) -> Result<(), WireError> {
        ok(self.missing.len() <= VIEW_PEERS_MAX, "split.missing")?;
        weight(self.heaviest)?;
        self.branch.check()
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

    fn branch(rounds: &[u64]) -> Branch {
        let mut bases = [None; BRANCH_BASES];
        for (slot, round) in bases.iter_mut().zip(rounds) {
            *slot = Some(base(*round));
        }
        Branch {
            bases,
            members: 2,
            weight: 3.0,
        }
    }

    #[test]
    fn branches_meet_if_they_share_one_of_their_bases() {
        for (one, other, meet) in [
            (branch(&[7, 6]), branch(&[7, 6]), true),
            // The last proposal reached one side only.
            (branch(&[8, 7]), branch(&[7, 6]), true),
            (branch(&[9, 8]), branch(&[7, 6]), false),
            (branch(&[0]), branch(&[0]), true),
            (branch(&[0]), branch(&[1]), false),
            (branch(&[]), branch(&[]), false),
        ] {
            assert_eq!(one.meets(&other), meet, "{one:?} {other:?}");
            assert_eq!(other.meets(&one), meet, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_branch_of_no_members_or_of_an_absurd_weight_is_refused() {
        let good = branch(&[7]);
        assert!(good.check().is_ok());
        for bad in [
            Branch { members: 0, ..good },
            Branch {
                members: 65,
                ..good
            },
            Branch {
                weight: -1.0,
                ..good
            },
            Branch {
                weight: f64::NAN,
                ..good
            },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
