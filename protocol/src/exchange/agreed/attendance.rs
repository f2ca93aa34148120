//! Who contributed to a decided round. All members that apply a round see the same contributors, so
//! they go on without the same members, and count the same seats.

use super::ballot::ShardVersion;
use super::electorate::signs;
use super::fragment::FragmentRound;
use super::group::Group;
use super::member::Member;
use super::message::{FragmentMessage, Scoped};
use crate::core::context::Context;
use crate::{Ending, Event, Members, PeerId, Remote, Round};

/// The round of a group has ended: notes who took part and contributed nothing.
pub(super) fn note_round(cx: &mut Context, group: Option<&Group>, fragments: &[FragmentRound]) {
    let Some(group) = group else { return };
    let decided = fragments.iter().filter(|b| {
        let applied = matches!(b.ending, Some(Ending::Apply(_) | Ending::Gather(_)));
        applied && b.scope.round == cx.round
    });
    let versions = decided.clone().filter_map(|b| b.agreement.decided.as_ref());
    let seated = versions.map(|(_, versions)| named(&group.members, versions));
    let seated = seated.fold(Members::NONE, |all, more| all | more);
    if let Some(came) = decided.map(contributors).reduce(|all, more| all | more) {
        note(cx, cx.round, &group.members, came);
        note_seats(cx, cx.round, &group.members, seated);
    }
}

/// Remembers whose contributions are in a round's result.
fn note_seats(cx: &mut Context, round: Round, members: &[Member], seated: Members) {
    let seated = seated.iter().filter_map(|index| members.get(index));
    let seated = seated.map(|member| member.peer).collect();
    cx.view.seats.note(cx.now, round, seated);
}

/// The members in these versions. Unlike [`contributors`], all that know the decision agree.
fn named(members: &[Member], versions: &[ShardVersion]) -> Members {
    let used = |(index, member): (usize, &Member)| {
        let by_another = |v: &ShardVersion| v.owner != member.peer && v.contributors.has(index);
        // What is gathered is one contribution, which its owner alone can make.
        let its_own =
            |v: &ShardVersion| v.owner == member.peer && v.contributors == Members::one(index);
        let given = versions.iter().any(|v| by_another(v) || its_own(v));
        given.then_some(index)
    };
    members.iter().enumerate().filter_map(used).collect()
}

/// A past round was replayed: notes the same as far as its decisions show it.
pub(super) fn note_replayed(cx: &mut Context, round: Round, decisions: &[Scoped]) {
    let decided = decisions
        .iter()
        .filter_map(|decision| match &decision.body {
            FragmentMessage::Decided {
                members, versions, ..
            } => Some((members, versions)),
            _ => None,
        });
    let mut group: Option<(&[Member], Members, Members)> = None;
    for (members, versions) in decided {
        let (came, seated) = (by_others(members, versions), named(members, versions));
        let (before, sat) = group.map_or((Members::NONE, Members::NONE), |(_, before, sat)| {
            (before, sat)
        });
        group = Some((members, before | came, sat | seated));
    }
    if let Some((members, came, seated)) = group {
        note(cx, round, members, came);
        note_seats(cx, round, members, seated);
    }
}

fn note(cx: &mut Context, round: Round, members: &[Member], came: Members) {
    // A machine may be slow by design; one that wants to stop the others comes just often enough.
    let share = signs(cx);
    for (peer, came) in taking_part(cx, round, members, came) {
        let Some(remote) = cx.view.get_mut(peer) else {
            continue;
        };
        let absence = &mut remote.conduct.absence;
        let lost = match came {
            Some(came) => absence.note(round, came, share),
            None => absence.pass(round),
        };
        if let Some(until) = lost {
            cx.emit(Event::Absent { peer, until });
        }
    }
}

/// The other peers, and whether they contributed if they should have been in the round.
fn taking_part(
    cx: &Context,
    round: Round,
    members: &[Member],
    came: Members,
) -> Vec<(PeerId, Option<bool>)> {
    // Where a round goes on with the first that are ready, the others are late by design.
    let all_are_awaited = cx.plan.synchronization.quorum.enough == 0;
    let part = |(peer, remote): (PeerId, &Remote)| {
        let index = members.iter().position(|member| member.peer == peer);
        let member = index.and_then(|index| Some((index, members.get(index)?)));
        match member {
            Some((index, member)) => (member.said.weight > 0.0).then(|| came.has(index)),
            None => {
                let awaited = remote.ready && !remote.probation && cx.plan.draws(round, peer);
                (all_are_awaited && awaited).then_some(false)
            }
        }
    };
    cx.view
        .greeted()
        .map(|known| (known.0, part(known)))
        .collect()
}

/// The members whose contributions the owners of shards have used. What a member says of itself does not
/// count: the owner of a shard always has its own.
fn by_others(members: &[Member], versions: &[ShardVersion]) -> Members {
    let used = |(index, member): (usize, &Member)| {
        let mut others = versions
            .iter()
            .filter(|v| v.owner != member.peer)
            .peekable();
        // A member that owns all there is has given it to the others.
        let came = others.peek().is_none() || others.any(|v| v.contributors.has(index));
        came.then_some(index)
    };
    members.iter().enumerate().filter_map(used).collect()
}

fn contributors(decided: &FragmentRound) -> Members {
    let scope = &decided.scope;
    let Some((_, versions)) = &decided.agreement.decided else {
        return Members::NONE;
    };
    if !scope.is_gathered() {
        return by_others(&scope.group.members, versions);
    }
    // Each member gives its own contribution, and what it says about those of others where they are scored.
    // What others had to fetch later, it did not give.
    let given = |part: usize| {
        let version = versions.get(part);
        let there = version.is_some_and(|version| !scope.left_out(version));
        there && decided.transfers.given.contains_key(&(part as u16))
    };
    let len = scope.group.len();
    let all = |index: &usize| given(*index) && (!scope.scores() || given(len + index));
    (0..len).filter(all).collect()
}
