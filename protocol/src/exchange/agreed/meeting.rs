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

use super::formed::Formed;
use super::message::{FormingMessage, MergeSide};
use super::sides::{self, Head};
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::Outcome;
use crate::limits::{MERGE_GRACE, TERMS_MAX, VIEW_PEERS_MAX};
use crate::rendezvous::rendezvous;
use crate::{PeerId, Round, Time, Wait};
use std::collections::{BTreeMap, BTreeSet};

/// The slot of the rendezvous hash that picks who proposes a merge.
const SLOT: u8 = 3;

/// A peer that forms a group this often after it was told of a merge does not stop for it. The first time it
/// may not have heard of it yet.
const ROUNDS_TO_STOP: u8 = 2;

/// A proposal of a merge: from whom, its round and term, its sides.
type Proposal = (PeerId, (Round, u8), Vec<MergeSide>);

/// How far a peer is with bringing branches together.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    active: bool,
    /// Whether links that are not up are waited for no longer.
    impatient: bool,
    /// Until when the members are waited for.
    until: Time,
    term: u8,
    tried: BTreeSet<PeerId>,
    proposer: Option<PeerId>,
    /// A proposal that this peer cannot judge before it has heard from more of its members.
    early: Option<Proposal>,
    /// Peers that have stopped, with what they hold.
    said: BTreeMap<PeerId, Head>,
    /// How often others began an ordinary round since this peer has stopped.
    began: BTreeMap<PeerId, u8>,
}

/// Peers of either side that have not stopped for the merge yet.
pub(super) fn silent(cx: &Context, meeting: &Meeting) -> Vec<PeerId> {
    let sides = cx.view.mates().chain(cx.view.apart());
    let silent = sides.filter(|(id, r)| r.ready && !meeting.said.contains_key(id));
    silent.map(|(id, _)| id).collect()
}

impl Meeting {
    /// Whether this peer has stopped and waits for a merge.
    pub(super) const fn active(&self) -> bool {
        self.active
    }

    /// The furthest round that a merge may have.
    pub(super) fn reach(&self, cx: &Context) -> Round {
        let merges = self.said.values().map(|head| head.round.next());
        merges.max().unwrap_or_default().max(cx.round)
    }

    /// Whether branches are to be merged before this peer trains on: most of both sides are here, or
    /// a peer of this side has stopped for it.
    pub(super) fn due(&self, cx: &Context) -> bool {
        let Some(mine) = cx.branch().filter(|_| cx.view.split.may_try(cx.round)) else {
            return false;
        };
        let there = || cx.view.apart().filter(|(_, r)| r.ready);
        let theirs = there().filter_map(|(_, r)| r.contact.branch.as_deref().copied());
        let Some(theirs) = theirs.map(|branch| usize::from(branch.members)).max() else {
            return false;
        };
        let mates = || cx.view.mates().filter(|(_, r)| r.ready);
        let met = 2 * (1 + mates().count()) > usize::from(mine.members);
        let others_met = 2 * there().count() > theirs;
        met && others_met || mates().any(|(id, _)| self.said.contains_key(&id))
    }

    /// Stops for a merge, and tells all that it may bring together.
    pub(super) fn begin(&mut self, cx: &mut Context) -> Formed {
        let Some(branch) = cx.branch() else {
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
        if let Some(teller) = self.further_mate(cx) {
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
        if let Some(Head {
            round,
            anchor,
            branch,
        }) = self.said.get(&cx.me()).copied()
        {
            let branch = Box::new(branch);
            let meet = FormingMessage::Meet {
                round,
                anchor,
                branch,
            };
            cx.send(to, meet);
        }
    }

    /// The merge has a group, or does not come about now.
    pub(super) fn end(&mut self, cx: &mut Context, expired: bool) {
        if self.active {
            self.active = false;
            self.said.remove(&cx.me());
            cx.waited(Wait::Group, expired);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// Forgets who has stopped: a merge is over.
    pub(super) fn forget(&mut self) {
        self.said.clear();
    }

    /// A peer goes on with rounds of its branch.
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
        let fits = cx.view.is_apart(from) || cx.view.mates().any(|(id, _)| id == from);
        if !fits || self.said.len() >= VIEW_PEERS_MAX {
            return Formed::Waiting;
        }
        let before = self.said.insert(from, head);
        if !self.active {
            return Formed::Waiting;
        }
        if before != Some(head) {
            // It may have missed what this peer said.
            self.say(cx, from);
        }
        match self.further_mate(cx) {
            Some(teller) => self.behind(cx, teller, false),
            None => match self.early.take() {
                Some((from, at, sides)) => self.proposed(cx, from, at, &sides),
                None => self.consider(cx),
            },
        }
    }

    /// A peer gives a sign of life: what this one said may have been lost, or it may have left its round.
    pub(super) fn heard(&mut self, cx: &mut Context, from: PeerId) -> Formed {
        if self.active && self.candidates(cx).contains(&from) {
            self.say(cx, from);
        }
        self.consider(cx)
    }

    /// A peer of this side that has stopped in a later round.
    fn further_mate(&self, cx: &Context) -> Option<PeerId> {
        let mates = cx.view.mates().map(|(id, _)| id);
        let mut further = mates.filter(|id| {
            let head = self.said.get(id);
            head.is_some_and(|head| head.round > cx.round)
        });
        further.next()
    }

    fn behind(&mut self, cx: &mut Context, teller: PeerId, resync: bool) -> Formed {
        self.end(cx, false);
        Formed::Outcome(Outcome::Behind { teller, resync })
    }

    /// Peers that a merge may bring together with this one.
    fn candidates(&self, cx: &Context) -> Vec<PeerId> {
        let all = cx.view.apart().chain(cx.view.mates());
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
        let sides = sides::sides(&self.said);
        let late = cx.now >= self.until;
        let candidates = self.coming(cx);
        if sides.len() < 2 {
            // The others may go on with rounds of their own, or have left them to take a state over: from this
            // peer, perhaps, which gives none while it waits for them.
            let no_one = candidates.iter().all(|id| self.said.contains_key(id));
            return match late || (self.impatient && no_one) {
                true => Formed::Alone,
                false => Formed::Waiting,
            };
        }
        let merged: BTreeSet<PeerId> = sides::members(&sides).collect();
        let all_merge = candidates.iter().all(|id| merged.contains(id));
        let complete = self.impatient || sides::complete(&self.said, &sides);
        if late || (all_merge && complete) {
            return self.elect(cx, sides);
        }
        Formed::Waiting
    }

    fn elect(&mut self, cx: &mut Context, sides: Vec<MergeSide>) -> Formed {
        let untried = sides::members(&sides).filter(|id| !self.tried.contains(id));
        let rank = |id: &PeerId| (rendezvous(&cx.plan.run, Round(0), SLOT, *id), *id);
        match untried.max_by_key(rank) {
            None => Formed::Alone,
            Some(peer) if peer == cx.me() => self.propose(cx, sides),
            Some(peer) => {
                self.proposer = Some(peer);
                cx.waited(Wait::Group, false);
                let own = cx.deadlines.allow(Wait::Group, [peer]);
                self.until = cx.wait(Wait::Group, own + cx.deadlines.answer());
                cx.timers.set(Timer::Exchange, self.until);
                Formed::Waiting
            }
        }
    }

    fn propose(&mut self, cx: &mut Context, sides: Vec<MergeSide>) -> Formed {
        let round = sides::round_of(&self.said, &sides);
        let (me, term) = (cx.me(), self.term);
        let Some(group) = sides::group(&cx.plan, round, &sides, me) else {
            return Formed::Alone;
        };
        for (_, peer) in group.others() {
            let sides = sides.clone();
            cx.send(peer, FormingMessage::Merge { round, term, sides });
        }
        self.end(cx, false);
        cx.round = round;
        Formed::Group(Box::new(group))
    }

    /// Another peer proposes a merge.
    pub(super) fn proposed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        (round, term): (Round, u8),
        sides: &[MergeSide],
    ) -> Formed {
        let follows = self.active
            && sides::members(sides).any(|id| id == from)
            && sides::acceptable(cx, &self.said, (round, sides));
        let group = follows
            .then(|| sides::group(&cx.plan, round, sides, cx.me()))
            .flatten();
        let Some(group) = group else {
            let unheard = sides::members(sides).any(|id| !self.said.contains_key(&id));
            match self.active && unheard {
                true => self.early = Some((from, (round, term), sides.to_vec())),
                false => cx.send(from, FormingMessage::Decline { round, term }),
            }
            return Formed::Waiting;
        };
        self.end(cx, false);
        cx.round = round;
        Formed::Group(Box::new(group))
    }

    /// A peer is gone.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) -> Formed {
        self.said.remove(&peer);
        match self.active && self.proposer == Some(peer) {
            true => self.next(cx),
            false => self.consider(cx),
        }
    }

    /// A deadline has passed.
    pub(super) fn timeout(&mut self, cx: &mut Context) -> Formed {
        if self.proposer.is_some() {
            return self.next(cx);
        }
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
        let sides = sides::sides(&self.said);
        match self.term < TERMS_MAX && sides.len() > 1 {
            true => self.elect(cx, sides),
            false => Formed::Alone,
        }
    }
}
