//! Decided rounds that stragglers and newcomers may still ask for. Bounded in rounds and bytes.

use super::decision::{loss_of, slices_of, taken_in, weight_of};
use super::electorate::signs;
use super::fragment::FragmentRound;
use super::group::Group;
use super::member::{Member, ShardVersion};
use super::message::{FragmentMessage, Scoped};
use super::scope::Reduce;
use crate::core::context::Context;
use crate::data::Counted;
use crate::limits::{
    HISTORY_BYTES_MAX, HISTORY_NEWEST_BYTES_MAX, HISTORY_PINNED_ROUNDS_MAX, HISTORY_ROUNDS_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Ending, Event, ExchangeKind, FragmentId, Loss, Members, Part, PeerId, Remote, Round, SliceId,
};
use std::collections::VecDeque;

/// One round, as far as it is decided and applied.
#[derive(Debug)]
struct Past {
    round: Round,
    /// `Decided` or `Void`.
    decisions: SortedMap<FragmentId, Scoped>,
    /// The same with proofs, where members sign.
    proofs: SortedMap<FragmentId, Scoped>,
    /// The bytes that its decisions name, fragment by fragment, oldest first.
    kept: VecDeque<(FragmentId, u64)>,
    /// Every fragment's bytes are here.
    whole: bool,
    /// It merged branches. Only the members of its group can apply that.
    merged: bool,
}

impl Past {
    fn new(round: Round) -> Self {
        Self {
            round,
            decisions: SortedMap::new(),
            proofs: SortedMap::new(),
            kept: VecDeque::new(),
            whole: true,
            merged: false,
        }
    }

    fn bytes(&self) -> u64 {
        self.kept.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The last decided rounds, newest last.
#[derive(Debug, Default)]
pub(crate) struct History {
    past: VecDeque<Past>,
    slices: SortedSet<SliceId>,
    /// Rounds from here on are kept whatever their size.
    since: Option<Round>,
}

impl History {
    /// The sender still works on a past round: it learns how that ended, if it asks.
    pub(crate) fn tell(&self, cx: &mut Context, from: PeerId, message: &Scoped) {
        let decision = self.decision(message.round, message.fragment);
        if let Some(decision) = decision.filter(|_| message.body.asks()) {
            cx.send(from, decision.clone());
        }
    }

    fn past(&self, round: Round) -> Option<&Past> {
        self.past.iter().find(|past| past.round == round)
    }

    /// The decision of some fragment of a round, with its proof, if this peer can show those of all.
    pub(super) fn proof(&self, round: Round, fragments: usize) -> Option<&Scoped> {
        let past = self.past(round)?;
        let whole = past.whole && past.proofs.len() == fragments;
        past.proofs.values().next().filter(|_| whole)
    }

    pub(crate) fn keeps(&self, slice: &SliceId) -> bool {
        self.slices.contains(slice)
    }

    /// Keeps an applied fragment's decision, and releases all other bytes of its exchange.
    pub(super) fn close(&mut self, cx: &mut Context, closed: &mut FragmentRound) {
        // Who replays the round needs all scores, and judges by them.
        let judged = closed.plain_decision().filter(|_| closed.scope.scores());
        let keep = match &closed.ending {
            _ if let Some(decision) = &judged => slices_of(ExchangeKind::Gathered, decision),
            Some(ending) => ending.slices(),
            None => Vec::new(),
        };
        // Members that lack the result fetch it here. The rest of the exchange is of no use any
        // more.
        closed.release(cx, &keep);
        let (round, fragment) = (closed.scope.round, closed.scope.fragment);
        let ballot = closed.agreement.first();
        let void = closed.scope.scoped(FragmentMessage::Void { ballot });
        let decision = closed.plain_decision().filter(|_| !keep.is_empty());
        let merged = matches!(closed.scope.reduce, Reduce::Branches);
        if merged {
            // The rounds before it are those of one side, and mean nothing to the others.
            self.forget_before(cx, round);
        } else if let Some(decision) = &decision
            && cx.plan.fragments_of(round).next() == Some(fragment)
        {
            cx.view.split.decided(round, weight_of(decision));
        }
        self.add(cx, decision.unwrap_or(void), merged);
        // Late members believe a decision only with the signatures of those that made it.
        if let (Some(newest), Some(proof)) = (self.past.back_mut(), closed.proof()) {
            newest.proofs.insert(fragment, proof);
        }
    }

    pub(crate) fn keep(&mut self, cx: &mut Context, decision: Scoped) {
        self.add(cx, decision, false);
    }

    fn forget_before(&mut self, cx: &mut Context, round: Round) {
        let (past, kept) = std::mem::take(&mut self.past)
            .into_iter()
            .partition(|past: &Past| past.round < round);
        self.past = kept;
        let past: VecDeque<Past> = past;
        for decision in past.iter().flat_map(|past| past.decisions.values()) {
            self.release_of(cx, decision, false);
        }
    }

    fn add(&mut self, cx: &mut Context, decision: Scoped, merged: bool) {
        let (round, fragment) = (decision.round, decision.fragment);
        if self.past.back().is_none_or(|newest| newest.round != round) {
            self.past.push_back(Past::new(round));
        }
        let slices = slices_of(kind_of(cx, merged), &decision);
        // Scores are a few bytes for each member; the bound is about models.
        let large = slices.iter().filter(|slice| slice.part != Part::Scores);
        let bytes = match large.count() as u64 {
            0 => 0,
            count => bytes_of(cx, fragment, count),
        };
        self.slices.extend(slices);
        if let Some(newest) = self.past.back_mut() {
            newest.merged = merged;
            newest.kept.push_back((fragment, bytes));
            newest.decisions.insert(fragment, decision);
        }
        self.shrink(cx);
    }

    fn shrink(&mut self, cx: &mut Context) {
        // A newcomer that takes over the pinned state needs every round since then.
        if let (Some(since), Some(newest)) = (self.since, self.past.back())
            && newest.round >= since
            && newest.round.since(since) < HISTORY_PINNED_ROUNDS_MAX
        {
            return;
        }
        while self.past.len() > 1
            && (self.past.len() > HISTORY_ROUNDS_MAX || self.bytes() > HISTORY_BYTES_MAX)
        {
            let Some(oldest) = self.past.pop_front() else {
                break;
            };
            for decision in oldest.decisions.values() {
                self.release_of(cx, decision, oldest.merged);
            }
        }
        // The newest round alone may be too large. Without the bytes of its first fragments it
        // cannot be replayed, but its decisions still answer a member that works on it.
        while self.bytes() > HISTORY_NEWEST_BYTES_MAX.max(HISTORY_BYTES_MAX) {
            let Some(newest) = self.past.back_mut() else {
                break;
            };
            let Some((fragment, _)) = newest.kept.pop_front() else {
                break;
            };
            newest.whole = false;
            let merged = newest.merged;
            if let Some(decision) = newest.decisions.get(&fragment).cloned() {
                self.release_of(cx, &decision, merged);
            }
        }
    }

    fn release_of(&mut self, cx: &mut Context, decision: &Scoped, merged: bool) {
        for slice in slices_of(kind_of(cx, merged), decision) {
            if self.slices.remove(&slice) {
                cx.release(slice);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.past.iter().map(Past::bytes).sum()
    }

    /// The decision of one fragment, with its proof if there is one.
    pub(crate) fn decision(&self, round: Round, fragment: FragmentId) -> Option<&Scoped> {
        let past = self.past(round)?;
        let proof = past.proofs.get(&fragment);
        proof.or_else(|| past.decisions.get(&fragment))
    }

    pub(crate) fn counted(&self, kind: ExchangeKind, round: Round, first: FragmentId) -> Counted {
        let past = self.past(round);
        if past.is_some_and(|past| past.merged) {
            return Counted::Merged;
        }
        let decision = past.and_then(|past| past.decisions.get(&first));
        let decided = |d: &&Scoped| matches!(d.body, FragmentMessage::Decided { .. });
        match decision.filter(decided) {
            Some(decision) => Counted::Of(taken_in(kind, decision)),
            None => Counted::Void,
        }
    }

    /// The training loss that these agree on. `None` if the round has no result, or they say none.
    pub(crate) fn loss(&self, kind: ExchangeKind, round: Round, first: FragmentId) -> Option<Loss> {
        let past = self.past(round)?;
        let decision = past.decisions.get(&first).filter(|_| !past.merged)?;
        loss_of(kind, decision)
    }

    /// The decisions of a past round with this number of fragments, if all of them are still here.
    pub(crate) fn decisions(&self, round: Round, fragments: usize) -> Option<Vec<Scoped>> {
        let past = self.past(round)?;
        let whole = past.whole && !past.merged && past.decisions.len() == fragments;
        let shown = if past.proofs.is_empty() {
            &past.decisions
        } else {
            &past.proofs
        };
        (whole && shown.len() == fragments).then(|| shown.values().cloned().collect())
    }

    /// Keeps the decisions of this round and of up to [`HISTORY_PINNED_ROUNDS_MAX`] after it, even large ones, for
    /// newcomers that are taking over the state that opened it; `None` ends that.
    pub(crate) fn keep_since(&mut self, round: Option<Round>) {
        self.since = round;
    }

    /// Takes over decisions that were learned from others, so that they can be passed on.
    pub(crate) fn remember(&mut self, cx: &mut Context, round: Round, decisions: Vec<Scoped>) {
        if cx.plan.exchange != ExchangeKind::Gathered {
            note_replayed(cx, round, &decisions);
        }
        for decision in decisions {
            if cx.plan.fragments_of(round).next() == Some(decision.fragment) {
                cx.view.split.decided(round, weight_of(&decision));
            }
            let (fragment, plain) = (decision.fragment, decision.plain());
            let is_proof = plain != decision;
            self.add(cx, plain, false);
            if let Some(newest) = self.past.back_mut().filter(|_| is_proof) {
                newest.proofs.insert(fragment, decision);
            }
        }
    }
}

/// How decisions name slices. Branches are averaged shard by shard, whatever the exchange is.
fn kind_of(cx: &Context, merged: bool) -> ExchangeKind {
    if merged {
        ExchangeKind::AllReduce
    } else {
        cx.plan.exchange
    }
}

/// An estimate of a decided fragment's bytes: its shards together are as long as the fragment.
fn bytes_of(cx: &Context, fragment: FragmentId, slices: u64) -> u64 {
    let fragment = cx.plan.fragment(fragment);
    let whole = fragment.map_or(0, |f| f.aggregate.of(f.len));
    match cx.plan.exchange {
        ExchangeKind::Gathered => whole * slices,
        _ => whole,
    }
}

// Who contributed to a decided round. All members that apply a round see the same contributors, so
// they go on without the same members, and count the same seats.

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
