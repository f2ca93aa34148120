//! The sides of a merge: who holds which branch, and whether it may be merged. Pure functions of what
//! the members said.

use super::group::Group;
use super::message::{Member, MergeSide};
use crate::core::context::Context;
use crate::limits::{GROUP_MEMBERS_MAX, MERGE_SIDES_MAX};
use crate::{Branch, Digest, PeerId, Plan, Round};
use std::collections::{BTreeMap, BTreeSet};

/// What a member says of its branch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Head {
    /// The round that it is in.
    pub(super) round: Round,
    /// Hash of the anchor that opened it.
    pub(super) anchor: Digest,
    pub(super) branch: Branch,
}

/// The sides that may be merged: heads that a strict majority of their branch's last group holds. A
/// side's weight is the lower median of its members' claims, so most of them would have to lie.
pub(super) fn sides(said: &BTreeMap<PeerId, Head>) -> Vec<MergeSide> {
    let mut heads: BTreeMap<Digest, Vec<(PeerId, Head)>> = BTreeMap::new();
    for (peer, head) in said {
        heads.entry(head.anchor).or_default().push((*peer, *head));
    }
    let sides = heads.into_iter().filter_map(|(head, held)| {
        let of = claimed(held.iter().map(|(_, head)| head));
        let mut weights: Vec<f64> = held.iter().map(|(_, head)| head.branch.weight).collect();
        weights.sort_by(f64::total_cmp);
        (2 * held.len() > of).then(|| MergeSide {
            head,
            weight: weights[(weights.len() - 1) / 2],
            members: held.iter().map(|(peer, _)| *peer).collect(),
        })
    });
    let mut sides: Vec<MergeSide> = sides.take(MERGE_SIDES_MAX).collect();
    while members(&sides).count() > GROUP_MEMBERS_MAX {
        sides.pop();
    }
    sides
}

/// How many members the last group of a branch had, in the words of its members.
fn claimed<'a>(heads: impl Iterator<Item = &'a Head>) -> usize {
    heads
        .map(|head| usize::from(head.branch.members))
        .max()
        .unwrap_or(0)
}

/// All members of these sides.
pub(super) fn members(sides: &[MergeSide]) -> impl Iterator<Item = PeerId> {
    sides.iter().flat_map(|side| side.members.iter().copied())
}

/// Whether all members of the branches' last groups are among these sides.
pub(super) fn complete(said: &BTreeMap<PeerId, Head>, sides: &[MergeSide]) -> bool {
    sides.iter().all(|side| {
        let heads = side.members.iter().filter_map(|peer| said.get(peer));
        side.members.len() >= claimed(heads)
    })
}

/// The round of a merge: the one after the furthest side's. Of a side's members the median counts.
pub(super) fn round_of(said: &BTreeMap<PeerId, Head>, sides: &[MergeSide]) -> Round {
    let middle = |side: &MergeSide| {
        let heads = side.members.iter().filter_map(|peer| said.get(peer));
        let mut rounds: Vec<Round> = heads.map(|head| head.round).collect();
        rounds.sort_unstable();
        rounds.get(rounds.len().saturating_sub(1) / 2).copied()
    };
    let furthest = sides.iter().filter_map(middle).max();
    furthest.unwrap_or_default().next()
}

/// Whether this peer follows a proposal: both sides are what it heard of them, and it holds one.
pub(super) fn acceptable(
    cx: &Context,
    said: &BTreeMap<PeerId, Head>,
    (round, sides): (Round, &[MergeSide]),
) -> bool {
    let all: BTreeSet<PeerId> = members(sides).collect();
    if all.len() != members(sides).count() || sides.len() < 2 {
        return false;
    }
    let furthest = said.values().map(|head| head.round).max();
    if round <= cx.round || furthest.is_none_or(|furthest| round > furthest.next()) {
        return false;
    }
    let mine = |side: &MergeSide| side.head == cx.anchor() && side.members.contains(&cx.me());
    let known = |side: &MergeSide| {
        let heads = side.members.iter().filter_map(|peer| said.get(peer));
        let heads: Vec<&Head> = heads.filter(|head| head.anchor == side.head).collect();
        let majority = 2 * side.members.len() > claimed(heads.iter().copied());
        let claims = |head: &&Head| head.branch.weight.to_bits() == side.weight.to_bits();
        // Some may not be heard here yet.
        majority && heads.iter().any(claims)
    };
    sides.iter().any(mine) && sides.iter().all(known)
}

/// The group of a merge: the members of a side share its weight.
pub(super) fn group(plan: &Plan, round: Round, sides: &[MergeSide], me: PeerId) -> Option<Group> {
    let mut all: Vec<Member> = Vec::new();
    for side in sides {
        let weight = side.weight / side.members.len() as f64;
        all.extend(side.members.iter().map(|peer| Member {
            peer: *peer,
            weight,
            taken: None,
            loss: None,
        }));
    }
    all.sort_by_key(|member| member.peer);
    let mut counted: Vec<&MergeSide> = sides.iter().collect();
    counted.sort_by_key(|side| !side.members.contains(&me));
    let counted = counted.into_iter();
    let counted = counted.map(|side| (side.members.len() as u16, side.weight));
    let group = Group::new(plan, round, all, me)?;
    Some(group.of_sides(counted.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    fn head(round: u64, anchor: u8, members: u16, weight: f64) -> Head {
        Head {
            round: Round(round),
            anchor: Digest::from_bytes([anchor; 32]),
            branch: Branch {
                bases: Default::default(),
                members,
                weight,
            },
        }
    }

    #[test]
    fn a_side_is_a_head_that_most_of_its_branch_hold_with_the_median_of_their_claims() {
        let said: BTreeMap<PeerId, Head> = [
            (0, head(7, 1, 3, 30.0)),
            (1, head(7, 1, 3, 90.0)),
            (2, head(7, 2, 3, 30.0)), // its last round was void
            (3, head(4, 3, 2, 10.0)),
            (4, head(4, 3, 2, 10.0)),
        ]
        .into_iter()
        .map(|(id, head)| (peer(id), head))
        .collect();
        let found = sides(&said);
        let shape: Vec<(usize, f64)> = found.iter().map(|s| (s.members.len(), s.weight)).collect();
        assert_eq!(shape, [(2, 30.0), (2, 10.0)]);
        assert_eq!(round_of(&said, &found), Round(8));
        assert!(!complete(&said, &found));
        let without: BTreeMap<PeerId, Head> =
            said.into_iter().filter(|(id, _)| *id != peer(4)).collect();
        assert_eq!(sides(&without).len(), 1, "one of two is no majority");
    }
}
