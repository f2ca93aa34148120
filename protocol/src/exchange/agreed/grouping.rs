//! Forming a round's group. A peer that has trained tells all others that it is ready; once all
//! peers that take part are ready, or the deadline has passed, the winner of the rendezvous hash of
//! (run, round) among the ready ones proposes the group. This takes one round trip. If the winner
//! is gone, the next one proposes after a deadline.
//!
//! Each peer hears from every other, so all choose the proposer from the same information.
//! With at most 64 members these are at most 63 small messages a peer and round.

use super::electorate::{
    ahead, allowed, common_anchor, electorate, is_away, is_enough, proposers, proposes, settled,
    signs,
};
use super::formed::Formed;
use super::group::Group;
use super::joined::Joined;
use super::meeting::Meeting;
use super::message::{FormingMessage, Member};
use super::proposal::{self, Stated, Verdict};
use super::quorum::Enough;
use super::ready::Ready;
use super::said::Said;
use super::turns::Turns;
use super::whereabouts::Surroundings;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::Outcome;
use crate::limits::{GROUP_MEMBERS_MAX, TERMS_MAX};
use crate::rendezvous::rendezvous;
use crate::{Base, Digest, GroupTag, PeerError, PeerId, Round, Time, Wait};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// The forming of one round's group, and what others said of this round and the next.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    active: bool,
    pub(super) weight: f64,
    since: Time,
    /// How often no group came about, in this round.
    pub(super) attempts: u64,
    round: Round,
    /// Groups that this peer has left with a signature, and the round of the last one.
    left_signed: (u64, Option<Round>),
    /// No other peer is waited for: the peers that are ready now are the group.
    pub(super) closed: bool,
    /// Whether enough are ready.
    enough: Enough,
    pub(super) term: u8,
    pub(super) turns: Turns,
    pub(super) proposer: Option<PeerId>,
    pub(super) ready: BTreeMap<PeerId, Ready>,
    /// Groups of this round that it has left.
    pub(super) left: BTreeSet<GroupTag>,
    /// Who is in which group, where members sign.
    pub(super) joined: Joined,
    /// The forming of a group of branches, after a split.
    pub(super) meeting: Meeting,
}

impl Grouping {
    /// Whether this peer has trained and has no group yet.
    pub(super) fn active(&self) -> bool {
        self.active
    }

    /// This peer's training ended: it tells all others.
    pub(super) fn begin(&mut self, cx: &mut Context, weight: f64) -> Formed {
        if self.round != cx.round {
            self.attempts = 0;
            self.left.clear();
            self.turns.forget();
            self.round = cx.round;
        }
        self.active = true;
        self.closed = false;
        self.enough = Enough::default();
        self.weight = weight;
        self.since = cx.now;
        self.term = 0;
        self.proposer = None;
        self.ready.retain(|_, r| r.round >= cx.round);
        for (peer, ready) in &self.ready {
            if ready.round == cx.round {
                cx.deadlines.record(Wait::Group, *peer, Duration::ZERO); // it waited for us
            }
        }
        let (round, anchor) = (cx.round, cx.start());
        let proposes = proposes(cx, self.attempts);
        let greeted: Vec<PeerId> = cx.view.of_this_branch().map(|(id, _)| id).collect();
        let message = match signs(cx) {
            true => FormingMessage::SignedReady {
                round,
                anchor,
                proposes,
                seat: self.own_seat(cx),
            },
            false => FormingMessage::Ready {
                round,
                said: Said {
                    weight,
                    taken: cx.data.taken,
                    loss: cx.data.loss,
                },
                anchor,
                proposes,
            },
        };
        for peer in greeted {
            cx.send(peer, message.clone());
        }
        let settled: Vec<PeerId> = settled(cx).collect();
        let allowed = allowed(cx, settled);
        let deadline = cx.wait(Wait::Group, allowed);
        let next = self.turns.begin(cx, self.attempts, deadline);
        cx.timers.set(Timer::Exchange, next);
        self.consider(cx)
    }

    /// No group came about. Another member proposes the next one: not all may agree to what this one proposes.
    pub(super) fn alone(&mut self, cx: &mut Context) {
        self.attempts += 1;
        self.turns.over(self.proposer.take());
        self.end(cx, true);
    }

    pub(super) fn end(&mut self, cx: &mut Context, expired: bool) {
        if self.active {
            self.active = false;
            cx.waited(Wait::Group, expired);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// This peer leaves a group in which it has signed something.
    pub(super) fn leave_signed(&mut self, round: Round) {
        self.left_signed = (self.left_signed.0.wrapping_add(1), Some(round));
    }

    /// How many groups this peer has left with a signature, if the last one was of this round. It signs
    /// in another one of the round only as a peer that has restarted does: with another life, so that
    /// it cannot contradict itself, and only where that cannot decide anything else.
    pub(super) fn left_signed(&self, round: Round) -> Option<u64> {
        let (count, last) = self.left_signed;
        (last == Some(round)).then_some(count)
    }

    pub(super) fn ready(&mut self, cx: &mut Context, from: PeerId, ready: Ready) -> Formed {
        self.ready.insert(from, ready);
        if !self.active || ready.round != cx.round {
            return Formed::Waiting;
        }
        self.note_ready(cx, from);
        self.consider(cx)
    }

    /// A peer is ready for this round, perhaps after enough others. If this peer did not train, its
    /// wait does not show how much later than the others that peer is.
    fn note_ready(&self, cx: &mut Context, from: PeerId) {
        let (round, me) = (cx.round, cx.me());
        if cx.plan.draws(round, me) && cx.plan.draws(round, from) {
            let waited = cx.now.since(self.since);
            cx.deadlines.record(Wait::Group, from, waited);
        }
        self.enough.record_lateness(cx);
    }

    /// A peer is not in a group that was proposed to it. What it said of its readiness may be used up.
    pub(super) fn left_by(&mut self, peer: PeerId, round: Round, group: GroupTag, ready: bool) {
        self.joined.left(peer, round, group);
        if !ready {
            self.ready.remove(&peer);
        }
    }

    /// A peer was ready too late for its round: the next deadlines take it into account.
    pub(super) fn late(&self, cx: &mut Context, from: PeerId) {
        self.note_ready(cx, from);
    }

    /// A peer is gone: perhaps no peer is left to wait for, or it was to propose.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) -> Formed {
        self.ready.remove(&peer);
        match self.active {
            true if self.proposer == Some(peer) => self.next(cx),
            true => self.consider(cx),
            false => Formed::Waiting,
        }
    }

    /// Another peer proposes a group; an error where no honest peer would.
    pub(super) fn proposed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        (round, term): (Round, u8),
        (members, around): (&[Member], &Surroundings),
    ) -> Result<Formed, PeerError> {
        if !self.active || round != cx.round {
            if round == cx.round {
                cx.send(from, FormingMessage::Decline { round, term });
            }
            return Ok(Formed::Waiting);
        }
        let stated = Stated {
            weight: self.weight,
            taken: cx.data.taken,
            loss: cx.data.loss,
            before: self.attempts > 0,
        };
        let ready = self.ready.get(&from).filter(|r| r.round == round);
        let anchor = ready.map(|r| r.anchor);
        let verdict = proposal::judge(cx, from, members, stated, anchor)?;
        if verdict == Verdict::Decline
            || is_away(cx, from)
            || members.len()
                < cx.plan
                    .quorum_of(electorate(cx, self.attempts).min(GROUP_MEMBERS_MAX))
        {
            // A proposer that knows few other peers takes them for a majority.
            cx.send(from, FormingMessage::Decline { round, term });
            return Ok(Formed::Waiting);
        }
        Ok(
            match Group::new(&cx.plan, round, members.to_vec(), cx.me()) {
                Some(group) => self.form(cx, group.within(around.clone()), false),
                None => Formed::Waiting,
            },
        )
    }

    /// A proposal broke a rule: its sender proposes no more in this round.
    pub(super) fn refused(&mut self, cx: &mut Context, proposer: PeerId) -> Formed {
        self.turns.over(Some(proposer));
        if self.active && self.proposer == Some(proposer) {
            return self.next(cx);
        }
        Formed::Waiting
    }

    pub(super) fn timeout(&mut self, cx: &mut Context) -> Formed {
        if let Some(teller) = ahead(cx, 0) {
            self.end(cx, true);
            return Formed::Outcome(Outcome::Behind {
                teller,
                resync: false,
            });
        }
        if !self.closed && self.turns.only_paused(cx.now) && !self.enough.is_over(cx) {
            cx.timers.set(Timer::Exchange, self.turns.deadline());
            return self.consider(cx);
        }
        if self.closed {
            if let Some(proposer) = self.proposer {
                cx.suspect(proposer);
            }
            return self.next(cx);
        }
        if !self.enough.is_over(cx) {
            for peer in self.missing(cx) {
                cx.suspect(peer);
            }
        }
        self.closed = true;
        self.elect(cx)
    }

    /// The proposer did not propose: the next winner.
    fn next(&mut self, cx: &mut Context) -> Formed {
        self.turns.over(self.proposer.take());
        self.term += 1;
        match self.term < TERMS_MAX {
            true => self.elect(cx),
            false => Formed::NoGroup,
        }
    }

    /// Live peers that are not ready; newcomers are welcome but not waited for.
    pub(super) fn missing(&self, cx: &Context) -> Vec<PeerId> {
        let here = |id: &PeerId| self.ready.get(id).is_some_and(|r| r.round == cx.round);
        settled(cx).filter(|id| !here(id)).collect()
    }

    fn consider(&mut self, cx: &mut Context) -> Formed {
        let ready: Vec<PeerId> = self.all_ready(cx).into_keys().collect();
        if self.closed || self.turns.pauses(cx.now) || !self.enough_for_a_group(cx, &ready) {
            return Formed::Waiting;
        }
        if !self.missing(cx).is_empty() {
            self.enough.ready(cx, ready.len());
            if !self.enough.is_over(cx) {
                return Formed::Waiting;
            }
        }
        self.closed = true;
        self.elect(cx)
    }

    /// Whether these peers may form a group.
    pub(super) fn enough_for_a_group(&self, cx: &Context, ready: &[PeerId]) -> bool {
        is_enough(cx, self.attempts, ready)
    }

    /// All peers that are ready for this round, this peer included.
    fn all_ready(&self, cx: &Context) -> BTreeMap<PeerId, (f64, Digest)> {
        let linked = |id: &PeerId| {
            let there = cx.view.get(*id).is_some_and(|v| v.linked && v.greeted);
            there && !cx.view.is_apart(*id)
        };
        let others = self
            .ready
            .iter()
            .filter(|(id, r)| r.round == cx.round && linked(id));
        let mut all: BTreeMap<PeerId, (f64, Digest)> =
            others.map(|(id, r)| (*id, (r.weight, r.anchor))).collect();
        all.insert(cx.me(), (self.weight, cx.start()));
        all
    }

    /// Whether a ready peer, or this one, proposes groups in its own words.
    pub(super) fn may_propose(&self, cx: &Context, peer: PeerId) -> bool {
        let said = self.ready.get(&peer).map(|ready| ready.proposes);
        said.unwrap_or_else(|| peer == cx.me() && proposes(cx, self.attempts))
    }

    /// Who proposes, among the ready peers that share the most common start.
    fn elect(&mut self, cx: &mut Context) -> Formed {
        let all = self.all_ready(cx);
        let ready: Vec<PeerId> = all.keys().copied().collect();
        let enough = self.enough_for_a_group(cx, &ready);
        let without = match enough {
            true => Formed::NoGroup,
            false => Formed::Alone,
        };
        let anchor = common_anchor(&all, cx.start(), enough);
        let agreed: Vec<PeerId> = all
            .iter()
            .filter(|(_, (_, a))| *a == anchor)
            .map(|(id, _)| *id)
            .collect();
        if anchor != cx.start() {
            let liars = cx.plan.liars_of(electorate(cx, self.attempts));
            if agreed.len() <= liars {
                return without;
            }
            self.end(cx, false);
            let teller = agreed.first().copied().unwrap_or(cx.me());
            return Formed::Outcome(Outcome::Behind {
                teller,
                // What lacks only a directive of the owner is late, and can be replayed.
                resync: !cx.starts_from(cx.anchor(), cx.round, anchor),
            });
        }
        if !self.enough_for_a_group(cx, &agreed) {
            // Slow does not mean gone: an agreement without a majority of the linked peers would
            // split the run. What was trained stays for the next attempt.
            return without;
        }
        let may = |id: &PeerId| self.may_propose(cx, *id);
        let untried = proposers(cx, agreed, may).into_iter();
        let untried = untried.filter(|id| !self.turns.is_over(*id));
        let winner = untried.max_by_key(|id| (rendezvous(&cx.plan.run, cx.round, 0, *id), *id));
        self.proposer = winner;
        match winner {
            None => {
                self.turns.forget();
                Formed::NoGroup
            }
            Some(peer) if peer == cx.me() => self.propose(cx, &all, anchor),
            Some(peer) => {
                // The winner may wait for its whole deadline before it proposes, so this peer adds
                // the time of an answer to its own.
                cx.waited(Wait::Group, false);
                let own = cx.deadlines.allow(Wait::Group, [peer]);
                let deadline = cx.wait(Wait::Group, own + cx.deadlines.answer());
                cx.timers.set(Timer::Exchange, deadline);
                Formed::Waiting
            }
        }
    }

    pub(super) fn form(&mut self, cx: &mut Context, group: Group, expired: bool) -> Formed {
        self.end(cx, expired);
        cx.this_life.newcomer = false;
        let base = Base {
            round: cx.round,
            anchor: cx.anchor(),
        };
        let members = group.members.iter().map(|m| (m.peer, m.weight));
        cx.view.grouped(base, members);
        cx.sort_sides();
        for (_, peer) in group.others() {
            if let Some(remote) = cx.view.get_mut(peer) {
                remote.settle();
                remote.grouped = Some(cx.round);
            }
        }
        Formed::Group(Box::new(group))
    }
}
