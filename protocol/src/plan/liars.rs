//! How many members of a group may lie, and how many must say the same for it to count.

use super::{AgreementPlan, Plan};

impl AgreementPlan {
    /// Members of a group of this size that may lie without harm: `min(liars, (n - 1) / 3)`. Zero
    /// means that members may crash but not lie.
    pub fn liars_of(&self, members: usize) -> usize {
        usize::from(self.liars).min(members.saturating_sub(1) / 3)
    }

    /// The least number of members of a group of this size that decides.
    pub fn quorum_of(&self, members: usize) -> usize {
        quorum(members, self.liars_of(members))
    }
}

impl Plan {
    /// As [`AgreementPlan::liars_of`].
    pub fn liars_of(&self, members: usize) -> usize {
        self.agreement.liars_of(members)
    }

    /// As [`AgreementPlan::quorum_of`].
    pub fn quorum_of(&self, members: usize) -> usize {
        self.agreement.quorum_of(members)
    }
}

/// The least number of members that decides among `members`, `liars` of which may lie:
/// `Q = floor((n + k) / 2) + 1`. Without liars that is a strict majority.
///
/// Any two quorums share at least k + 1 members, so they share one that does not lie. With
/// `n > 3k` the others are a quorum without the liars.
pub(crate) const fn quorum(members: usize, liars: usize) -> usize {
    (members + liars) / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::GROUP_MEMBERS_MAX;

    #[test]
    fn without_liars_a_quorum_is_a_strict_majority() {
        for members in 1..=GROUP_MEMBERS_MAX {
            for count in 0..=members {
                assert_eq!(count >= quorum(members, 0), 2 * count > members);
            }
        }
    }

    #[test]
    fn two_quorums_share_a_member_that_does_not_lie_and_liars_cannot_prevent_one() {
        for members in 1..=GROUP_MEMBERS_MAX {
            for liars in 0..=(members - 1) / 3 {
                let q = quorum(members, liars);
                assert!(2 * q - members > liars, "{members} {liars}");
                assert!(q <= members - liars, "{members} {liars}");
                assert!(q > 2 * liars, "{members} {liars}");
            }
        }
    }
}
