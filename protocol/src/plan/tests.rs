//! Quorums and what they share.

use super::Tolerance;
use crate::limits::GROUP_MEMBERS_MAX;

#[test]
fn without_liars_a_quorum_is_a_strict_majority() {
    for members in 1..=GROUP_MEMBERS_MAX {
        for count in 0..=members {
            let decides = count >= Tolerance::NONE.quorum(members);
            assert_eq!(decides, 2 * count > members);
        }
    }
}

#[test]
fn two_quorums_share_a_member_that_does_not_lie_and_liars_cannot_prevent_one() {
    for members in 1..=GROUP_MEMBERS_MAX {
        for liars in 0..=(members - 1) / 3 {
            let tolerance = Tolerance::of(liars as u16, members);
            let q = tolerance.quorum(members);
            assert!(tolerance.believes(2 * q - members), "{members} {liars}");
            assert!(q <= members - liars, "{members} {liars}");
            assert!(tolerance.may_be(q, q - liars), "{members} {liars}");
            assert!(q > 2 * liars, "{members} {liars}");
        }
    }
}
