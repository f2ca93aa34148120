//! Who contributed to a decided round. All members that apply a round see the same contributors, so
//! they go on without the same members.
//!
//! The quorum does not change by that: a member that lost its seat counts in it for as long as it is
//! linked and says that it takes part.

use super::Agreed;
use super::fragment::FragmentRound;
use super::group::Group;
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::{Event, Members, PeerId, Remote};

impl Agreed {
    /// The round has ended: notes who took part and contributed nothing.
    pub(super) fn note_attendance(&self, cx: &mut Context) {
        let Some(group) = &self.group else { return };
        let decided = self.fragment_rounds.iter().filter(|b| {
            let applied = matches!(b.ending, Some(Ending::Apply(_) | Ending::Gather(_)));
            applied && b.scope.round == cx.round
        });
        let Some(came) = decided.map(contributors).reduce(|all, more| all | more) else {
            return;
        };
        for (peer, came) in taking_part(cx, group, came) {
            let round = cx.round;
            let Some(remote) = cx.view.get_mut(peer) else {
                continue;
            };
            if let Some(until) = remote.conduct.absence.note(round, came) {
                cx.emit(Event::Absent { peer, until });
            }
        }
    }
}

/// The other peers that should have been in the round, and whether they contributed.
fn taking_part(cx: &Context, group: &Group, came: Members) -> Vec<(PeerId, bool)> {
    // Where a round goes on with the first that are ready, the others are late by design.
    let all_are_awaited = cx.plan.synchronization.quorum.enough == 0;
    let part = |(peer, remote): (PeerId, &Remote)| match group.index(peer) {
        Some(index) => group.bringing().has(index).then(|| came.has(index)),
        None => {
            let awaited = remote.ready && !remote.probation && cx.plan.draws(cx.round, peer);
            (all_are_awaited && awaited).then_some(false)
        }
    };
    let there = cx.view.greeted();
    there
        .filter_map(|known| Some((known.0, part(known)?)))
        .collect()
}

/// The members of whom others have used a contribution. What a member says of itself does not count: the
/// owner of a shard always has its own.
fn contributors(decided: &FragmentRound) -> Members {
    let scope = &decided.scope;
    let versions = decided.agreement.decided.iter().flat_map(|(_, v)| v);
    if scope.gathered {
        // Each member gives its own. What others had to fetch later, it did not.
        let parts = (0u16..).zip(versions);
        let given = parts.filter(|(part, version)| {
            !scope.left_out(version) && decided.transfers.given.contains_key(part)
        });
        return given
            .filter_map(|(_, v)| scope.group.index(v.owner))
            .collect();
    }
    let versions: Vec<_> = versions.collect();
    let by_others = |member: usize| {
        let owner = scope.group.peer(member);
        let mut others = versions.iter().filter(|v| v.owner != owner).peekable();
        // A member that owns all there is has given it to the others.
        others.peek().is_none() || others.any(|v| v.contributors.has(member))
    };
    (0..scope.group.len()).filter(|m| by_others(*m)).collect()
}
