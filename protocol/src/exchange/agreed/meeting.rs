//! Merging the branches of a swarm that was split.
//!
//! While a swarm is split each side goes on. Once peers of two branches that grew from one state see
//! enough of each other, they stop between two rounds and say so (`Meet`). When all that are there
//! have stopped, the winner of the rendezvous hash proposes a group of all sides (`Merge`), of each a
//! strict majority of its last group. The group then decides one round, in which every member brings
//! its anchor as plain f32, with its side's weight divided by the side's members:
//!
//! `x = sum_s W_s x_s / sum_s W_s`
//!
//! with the anchors x_s and the weights W_s that each side's rounds have decided since the base A. This
//! is `A + sum_s W_s (x_s - A) / sum_s W_s`, so no copy of A is kept. The round is the one after the
//! furthest side's, and is decided like any other: a death in it is repaired, and it may be void.
//!
//! A merge that does not come about lets both sides train on for a round and try again, a few times.
//! After that they form groups as strangers to each other do: one side takes over the other's state.
//!
//! Who holds which branch, and whether it may be merged, is found by pure functions of what the members said.

use super::group::{Formed, Group};
use super::member::Member;
use super::message::{FormingMessage, Head, MergeSide};
use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::Outcome;
use crate::id::rendezvous;
use crate::limits::{GROUP_MEMBERS_MAX, MERGE_GRACE, MERGE_SIDES_MAX, TERMS_MAX, VIEW_PEERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{Digest, PeerId, Plan, Round, Time, Wait};

/// The slot of the rendezvous hash that picks who proposes a merge.
const SLOT: u8 = 3;

/// A peer that forms groups this often after it was told of a merge does not stop for it.
const ROUNDS_TO_STOP: u8 = 2;

/// A proposal of a merge: from whom, its round and term, its sides.
type Proposal = (PeerId, (Round, u8), Vec<MergeSide>);

/// State of one peer that brings branches together.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    active: bool,
    /// Links that are not up are waited for no longer.
    impatient: bool,
    /// End of the wait for the members.
    until: Time,
    term: u8,
    tried: SortedSet<PeerId>,
    proposer: Option<PeerId>,
    /// A proposal that this peer cannot judge before it has heard from more of its members.
    early: Option<Proposal>,
    /// Peers that have stopped, with what they hold.
    said: SortedMap<PeerId, Head>,
    /// Ordinary rounds that others began since this peer has stopped.
    began: SortedMap<PeerId, u8>,
}

impl Meeting {
    /// Peers of either side that have not stopped for the merge yet.
    pub(super) fn silent(&self, cx: &Context) -> Vec<PeerId> {
        let sides = cx.view.own_side().chain(cx.view.apart());
        let silent = sides.filter(|(id, r)| r.ready && !self.said.contains_key(id));
        silent.map(|(id, _)| id).collect()
    }

    /// This peer has stopped and waits for a merge.
    pub(super) const fn active(&self) -> bool {
        self.active
    }

    /// The furthest round that a merge may have.
    pub(super) fn reach(&self, cx: &Context) -> Round {
        let merges = self.said.values().map(|head| head.round.next());
        merges.max().unwrap_or_default().max(cx.round)
    }

    /// A merge comes first: most of both sides are here, or one of this side has stopped for it.
    pub(super) fn due(&self, cx: &Context) -> bool {
        let split = &cx.view.split;
        let Some(mine) = split.mergeable().filter(|_| split.may_try(cx.round)) else {
            return false;
        };
        let there = || cx.view.apart().filter(|(_, r)| r.ready);
        let theirs = there().filter_map(|(_, r)| r.contact.branch.as_deref().copied());
        // The largest claim counts: with fewer members a minority of that side could be merged.
        let Some(theirs) = theirs.map(|branch| usize::from(branch.members)).max() else {
            return false;
        };
        let own_side = || cx.view.own_side().filter(|(_, r)| r.ready);
        let met = 2 * (1 + own_side().count()) > usize::from(mine.members);
        let others_met = 2 * there().count() > theirs;
        met && others_met || own_side().any(|(id, _)| self.said.contains_key(&id))
    }

    /// Stops for a merge, and tells all that it may bring together.
    pub(super) fn begin(&mut self, cx: &mut Context) -> Formed {
        let Some(branch) = cx.view.split.mergeable() else {
            return Formed::Alone;
        };
        self.active = true;
        self.impatient = false;
        self.term = 0;
        self.tried.clear();
        self.proposer = None;
        self.early = None;
        self.began.clear();
        let head = Head {
            round: cx.round,
            anchor: cx.anchor(),
            branch,
        };
        self.said.insert(cx.me(), head);
        if let Some(teller) = self.further_peer(cx) {
            return self.behind(cx, teller, false);
        }
        for peer in self.candidates(cx) {
            self.say(cx, peer);
        }
        // Others may have begun to train a round just now. They stop when it ends.
        self.until = cx.wait(Wait::Group, cx.deadlines.ceiling());
        let grace = cx.now + MERGE_GRACE;
        cx.timers.set(Timer::Exchange, self.until.min(grace));
        self.consider(cx)
    }

    /// Tells a peer where this one has stopped.
    fn say(&self, cx: &mut Context, to: PeerId) {
        if let Some(head) = self.said.get(&cx.me()) {
            cx.send(to, FormingMessage::Meet(Box::new(*head)));
        }
    }

    /// The merge has a group, or does not come about now.
    pub(super) fn end(&mut self, cx: &mut Context) {
        if self.active {
            self.active = false;
            self.said.remove(&cx.me());
            cx.waited(Wait::Group);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// Forgets who has stopped: a merge is over.
    pub(super) fn forget(&mut self) {
        self.said.clear();
    }

    pub(super) fn goes_on(&mut self, cx: &mut Context, peer: PeerId) -> Formed {
        self.said.remove(&peer);
        if self.active && self.began.len() < VIEW_PEERS_MAX {
            let began = self.began.entry(peer).or_default();
            *began = began.saturating_add(1);
        }
        self.consider(cx)
    }

    /// A peer has stopped for a merge.
    pub(super) fn met(&mut self, cx: &mut Context, from: PeerId, head: Head) -> Formed {
        if let Some(remote) = cx.view.get_mut(from) {
            remote.contact.branch = Some(Box::new(head.branch));
            remote.anchor = Some(head.anchor);
        }
        cx.sort_sides();
        let fits = cx.view.is_apart(from) || cx.view.own_side().any(|(id, _)| id == from);
        // Only peers of this side, and of branches that share a base with it, can be merged.
        if !fits || self.said.len() >= VIEW_PEERS_MAX {
            return Formed::Waiting;
        }
        let before = self.said.insert(from, head);
        // What it holds is noted all the same: this peer may stop a moment later.
        if !self.active {
            return Formed::Waiting;
        }
        if before != Some(head) {
            // It may have missed what this peer said.
            self.say(cx, from);
        }
        match self.further_peer(cx) {
            Some(teller) => self.behind(cx, teller, false),
            None => match self.early.take() {
                Some((from, at, sides)) => self.proposed(cx, from, at, &sides),
                None => self.consider(cx),
            },
        }
    }

    /// A peer gives a sign of life: what this one said may have been lost, or it may have left its round.
    pub(super) fn heard(&mut self, cx: &mut Context, from: PeerId) -> Formed {
        // Repeated with each sign of life, because no other message would repair a lost one.
        if self.active && self.candidates(cx).contains(&from) {
            self.say(cx, from);
        }
        self.consider(cx)
    }

    /// A peer of this side that has stopped in a later round.
    fn further_peer(&self, cx: &Context) -> Option<PeerId> {
        let own_side = cx.view.own_side().map(|(id, _)| id);
        let mut further = own_side.filter(|id| {
            let head = self.said.get(id);
            head.is_some_and(|head| head.round > cx.round)
        });
        further.next()
    }

    fn behind(&mut self, cx: &mut Context, teller: PeerId, resync: bool) -> Formed {
        self.end(cx);
        Formed::Outcome(Outcome::Behind { teller, resync })
    }

    /// Peers that a merge may bring together with this one.
    fn candidates(&self, cx: &Context) -> Vec<PeerId> {
        let all = cx.view.apart().chain(cx.view.own_side());
        let here = all.filter(|(_, r)| r.ready && !r.suspected);
        here.map(|(id, _)| id).collect()
    }

    /// Candidates, without those that go on with rounds although this peer told them of the merge.
    fn coming(&self, cx: &Context) -> Vec<PeerId> {
        let mut candidates = self.candidates(cx);
        let began = |id: &PeerId| self.began.get(id).copied().unwrap_or(0);
        candidates.retain(|id| {
            // Before, it may not see enough of both sides yet.
            !self.impatient || self.said.contains_key(id) || began(id) < ROUNDS_TO_STOP
        });
        candidates
    }

    /// Elects a proposer once all that are here have stopped.
    pub(super) fn consider(&mut self, cx: &mut Context) -> Formed {
        if !self.active || self.proposer.is_some() {
            return Formed::Waiting;
        }
        let sides = sides_of(&self.said);
        let late = cx.now >= self.until;
        let candidates = self.coming(cx);
        if sides.len() < 2 {
            // The others may go on with rounds of their own, or have left them to take a state over: from this
            // peer, perhaps, which gives none while it waits for them.
            let no_one = candidates.iter().all(|id| self.said.contains_key(id));
            return if late || (self.impatient && no_one) {
                Formed::Alone
            } else {
                Formed::Waiting
            };
        }
        let merged: SortedSet<PeerId> = members_of(&sides).collect();
        let all_merge = candidates.iter().all(|id| merged.contains(id));
        let complete = self.impatient || is_complete(&self.said, &sides);
        if late || (all_merge && complete) {
            return self.elect(cx, sides);
        }
        Formed::Waiting
    }

    fn elect(&mut self, cx: &mut Context, sides: Vec<MergeSide>) -> Formed {
        let untried = members_of(&sides).filter(|id| !self.tried.contains(id));
        let rank = |id: &PeerId| (rendezvous(&cx.plan.run, Round(0), SLOT, *id), *id);
        match untried.max_by_key(rank) {
            None => Formed::Alone,
            Some(peer) if peer == cx.me() => self.propose(cx, sides),
            Some(peer) => {
                // It may use its own deadline up before it proposes, so an answer's time comes on
                // top.
                self.proposer = Some(peer);
                cx.waited(Wait::Group);
                let own = cx.deadlines.allow(Wait::Group, [peer]);
                self.until = cx.wait(Wait::Group, own + cx.deadlines.answer());
                cx.timers.set(Timer::Exchange, self.until);
                Formed::Waiting
            }
        }
    }

    fn propose(&mut self, cx: &mut Context, sides: Vec<MergeSide>) -> Formed {
        let round = round_of(&self.said, &sides);
        let (me, term) = (cx.me(), self.term);
        let Some(group) = group_of(&cx.plan, round, &sides, me) else {
            return Formed::Alone;
        };
        for (_, peer) in group.others() {
            let sides = sides.clone();
            cx.send(peer, FormingMessage::Merge { round, term, sides });
        }
        self.end(cx);
        cx.round = round;
        Formed::Group(Box::new(group))
    }

    pub(super) fn proposed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        (round, term): (Round, u8),
        sides: &[MergeSide],
    ) -> Formed {
        let follows = self.active
            && members_of(sides).any(|id| id == from)
            && acceptable(cx, &self.said, (round, sides));
        let group = follows
            .then(|| group_of(&cx.plan, round, sides, cx.me()))
            .flatten();
        let Some(group) = group else {
            // What it lacks may still be on its way; then it judges once more.
            let unheard = members_of(sides).any(|id| !self.said.contains_key(&id));
            if self.active && unheard {
                self.early = Some((from, (round, term), sides.to_vec()));
            } else {
                cx.send(from, FormingMessage::Decline { round, term });
            }
            return Formed::Waiting;
        };
        self.end(cx);
        cx.round = round;
        Formed::Group(Box::new(group))
    }

    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) -> Formed {
        self.said.remove(&peer);
        if self.active && self.proposer == Some(peer) {
            self.next(cx)
        } else {
            self.consider(cx)
        }
    }

    /// A deadline has passed.
    pub(super) fn timeout(&mut self, cx: &mut Context) -> Formed {
        if self.proposer.is_some() {
            return self.next(cx);
        }
        // Links that are down hold a merge up for one grace period and no longer.
        self.impatient = true;
        if cx.now < self.until {
            cx.timers.set(Timer::Exchange, self.until);
        }
        self.consider(cx)
    }

    /// The proposer did not propose: the next winner.
    fn next(&mut self, cx: &mut Context) -> Formed {
        self.tried.extend(self.proposer.take());
        self.term += 1;
        let sides = sides_of(&self.said);
        if self.term < TERMS_MAX && sides.len() > 1 {
            self.elect(cx, sides)
        } else {
            Formed::Alone
        }
    }
}

/// The sides that may be merged: heads that a strict majority of their branch's last group holds. A
/// side's weight is the lower median of its members' claims, so most of them would have to lie.
fn sides_of(said: &SortedMap<PeerId, Head>) -> Vec<MergeSide> {
    let mut heads: SortedMap<Digest, Vec<(PeerId, Head)>> = SortedMap::new();
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
    // A side is taken whole or not at all, so that its weight is that of its members.
    while members_of(&sides).count() > GROUP_MEMBERS_MAX {
        sides.pop();
    }
    sides
}

/// Members of a branch's last group, in the words of its members.
fn claimed<'a>(heads: impl Iterator<Item = &'a Head>) -> usize {
    heads
        .map(|head| usize::from(head.branch.members))
        .max()
        .unwrap_or(0)
}

fn members_of(sides: &[MergeSide]) -> impl Iterator<Item = PeerId> {
    sides.iter().flat_map(|side| side.members.iter().copied())
}

/// All members of the branches' last groups are among these sides.
pub(super) fn is_complete(said: &SortedMap<PeerId, Head>, sides: &[MergeSide]) -> bool {
    sides.iter().all(|side| {
        let heads = side.members.iter().filter_map(|peer| said.get(peer));
        side.members.len() >= claimed(heads)
    })
}

/// The round of a merge: the one after the furthest side's. Of a side's members the median counts.
fn round_of(said: &SortedMap<PeerId, Head>, sides: &[MergeSide]) -> Round {
    let middle = |side: &MergeSide| {
        let heads = side.members.iter().filter_map(|peer| said.get(peer));
        let mut rounds: Vec<Round> = heads.map(|head| head.round).collect();
        rounds.sort_unstable();
        rounds.get(rounds.len().saturating_sub(1) / 2).copied()
    };
    let furthest = sides.iter().filter_map(middle).max();
    furthest.unwrap_or_default().next()
}

/// True if this peer follows a proposal: all sides agree with the heads that it heard, and it is on one of them.
fn acceptable(
    cx: &Context,
    said: &SortedMap<PeerId, Head>,
    (round, sides): (Round, &[MergeSide]),
) -> bool {
    let all: SortedSet<PeerId> = members_of(sides).collect();
    if all.len() != members_of(sides).count() || sides.len() < 2 {
        return false;
    }
    let furthest = said.values().map(|head| head.round).max();
    // A round far ahead would end the run early for all that follow.
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
fn group_of(plan: &Plan, round: Round, sides: &[MergeSide], me: PeerId) -> Option<Group> {
    let mut all: Vec<Member> = Vec::new();
    for side in sides {
        let weight = side.weight / side.members.len() as f64;
        all.extend(side.members.iter().map(|peer| Member::new(*peer, weight)));
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
    use crate::Branch;
    use crate::id::tests::peer;
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
        let said: SortedMap<PeerId, Head> = [
            (0, head(7, 1, 3, 30.0)),
            (1, head(7, 1, 3, 90.0)),
            (2, head(7, 2, 3, 30.0)), // its last round was void
            (3, head(4, 3, 2, 10.0)),
            (4, head(4, 3, 2, 10.0)),
        ]
        .into_iter()
        .map(|(id, head)| (peer(id), head))
        .collect();
        let found = sides_of(&said);
        let shape: Vec<(usize, f64)> = found.iter().map(|s| (s.members.len(), s.weight)).collect();
        assert_eq!(shape, [(2, 30.0), (2, 10.0)]);
        assert_eq!(round_of(&said, &found), Round(8));
        assert!(!is_complete(&said, &found));
        let without: SortedMap<PeerId, Head> =
            said.into_iter().filter(|(id, _)| *id != peer(4)).collect();
        assert_eq!(sides_of(&without).len(), 1, "one of two is no majority");
    }
}
