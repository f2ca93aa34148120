//! Forming a round's group. A peer that has trained tells all others that it is ready; once all
//! peers that take part are ready, or the deadline has passed, the winner of the rendezvous hash of
//! (run, round) among the ready ones proposes the group. This takes one round trip. If the winner
//! is gone, the next one proposes after a deadline.
//!
//! Each peer hears from every other, so all choose the proposer from the same information.
//! With at most 64 members these are at most 63 small messages a peer and round.
//!
//! It proposes the peers that share an anchor, with the weights that count. The others believe it in nothing that
//! they know better ([`judge`]): their own weight, who takes part, and what a weight may be.

use super::electorate::{
    AllReady, Enough, Turns, ahead, allowed, common_anchor, electorate, is_away, is_enough,
    proposers, proposes, settled, signs,
};
use super::group::{Formed, Group};
use super::meeting::Meeting;
use super::member::{Member, Said, Surroundings, Whereabouts, cap, cap_of};
use super::message::{FormingMessage, Proposed};
use super::signed_message::Seat;
use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{Outcome, broke, forbid};
use crate::id::rendezvous;
use crate::limits::{GROUP_MEMBERS_MAX, TERMS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{Digest, GroupTag, Locality, PeerError, PeerId, Round, Time, Wait};
use core::time::Duration;
use std::cmp::Reverse;

/// The forming of one round's group, and what others said of this round and the next.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    active: bool,
    pub(super) weight: f64,
    since: Time,
    /// Attempts at this round that found no group.
    pub(super) attempts: u64,
    round: Round,
    /// Groups that this peer has left with a signature: it signs in another one with another life, so that it
    /// cannot contradict itself. And the last round in which that may be part of a decision.
    pub(super) left_signed: (u64, Option<Round>),
    /// No other peer is waited for: the peers that are ready now are the group.
    pub(super) closed: bool,
    enough: Enough,
    pub(super) term: u8,
    pub(super) turns: Turns,
    pub(super) proposer: Option<PeerId>,
    pub(super) ready: SortedMap<PeerId, Ready>,
    pub(super) left: SortedSet<GroupTag>,
    /// Groups that peers have joined, where members sign.
    pub(super) joined: Joined,
    /// The forming of a group of branches, after a split.
    pub(super) meeting: Meeting,
}

impl Grouping {
    /// This peer has trained and has no group yet.
    pub(super) fn active(&self) -> bool {
        self.active
    }

    /// This peer's training ended: it tells all others.
    pub(super) fn begin(&mut self, cx: &mut Context, weight: f64) -> Formed {
        // Another attempt at the same round remembers who was tried and which groups were left.
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
        let message = if signs(cx) {
            FormingMessage::SignedReady {
                round,
                anchor,
                proposes,
                seat: self.own_seat(cx),
            }
        } else {
            FormingMessage::Ready {
                round,
                said: self.own_words(cx),
                anchor,
                proposes,
            }
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

    /// What this peer says of its contribution.
    fn own_words(&self, cx: &Context) -> Said {
        Said {
            weight: self.weight,
            taken: cx.data.taken,
            loss: cx.data.loss,
        }
    }

    /// No group came about. Another member proposes the next one: not all may agree to what this one proposes.
    pub(super) fn alone(&mut self, cx: &mut Context) {
        self.attempts += 1;
        self.turns.over(self.proposer.take());
        self.end(cx);
    }

    pub(super) fn end(&mut self, cx: &mut Context) {
        if self.active {
            self.active = false;
            cx.waited(Wait::Group);
            cx.timers.stop(Timer::Exchange);
        }
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
    pub(super) fn note_ready(&self, cx: &mut Context, from: PeerId) {
        let (round, me) = (cx.round, cx.me());
        // A peer that was not drawn has no training to be late with.
        if cx.plan.draws(round, me) && cx.plan.draws(round, from) {
            let waited = cx.now.since(self.since);
            cx.deadlines.record(Wait::Group, from, waited);
        }
        self.enough.record_lateness(cx);
    }

    /// A peer is not in a group that was proposed to it. Its word of readiness may be used up.
    pub(super) fn left_by(&mut self, peer: PeerId, round: Round, group: GroupTag, ready: bool) {
        // It no longer counts for a quorum that votes in that group.
        self.joined.left(peer, round, group);
        if !ready {
            self.ready.remove(&peer);
        }
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
        proposed: &Proposed,
        around: &Surroundings,
    ) -> Result<Formed, PeerError> {
        let (round, term, members) = (proposed.round, proposed.term, &proposed.members);
        if !self.active || round != cx.round {
            // A proposer of this round waits for this peer's answer.
            if round == cx.round {
                cx.send(from, FormingMessage::Decline { round, term });
            }
            return Ok(Formed::Waiting);
        }
        let stated = OwnWords {
            said: self.own_words(cx),
            before: self.attempts > 0,
        };
        let ready = self.ready.get(&from).filter(|r| r.round == round);
        let anchor = ready.map(|r| r.anchor);
        let verdict = judge(cx, from, members, stated, anchor)?;
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
            match Group::new(&cx.plan, round, members.clone(), cx.me()) {
                Some(group) => self.form(cx, group.with_network(around.clone())),
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
        // The others went on without this peer: a group formed now would be beside theirs.
        if let Some(teller) = ahead(cx, 0) {
            self.end(cx);
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
            // It was ready and linked, and had its own deadline and the time of an answer.
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
        if self.term < TERMS_MAX {
            self.elect(cx)
        } else {
            Formed::NoGroup
        }
    }

    /// Live peers that are not ready; newcomers are welcome but not waited for.
    fn missing(&self, cx: &Context) -> Vec<PeerId> {
        settled(cx).filter(|id| !self.is_ready(cx, *id)).collect()
    }

    /// Live peers that are not ready; once no more are waited for, the proposer.
    pub(super) fn awaited(&self, cx: &Context) -> Vec<PeerId> {
        if self.closed {
            self.proposer.into_iter().collect()
        } else {
            self.missing(cx)
        }
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

    /// These peers may form a group.
    fn enough_for_a_group(&self, cx: &Context, ready: &[PeerId]) -> bool {
        is_enough(cx, self.attempts, ready)
    }

    fn all_ready(&self, cx: &Context) -> AllReady {
        // A word from before its link went down would put it into a group that waits for it.
        let linked = |id: &PeerId| cx.view.is_here(*id) && !cx.view.is_apart(*id);
        let ready = self.ready.iter();
        let others = ready.filter(|(id, r)| r.round == cx.round && linked(id));
        let mut all: AllReady = others.map(|(id, r)| (*id, (r.said, r.anchor))).collect();
        all.insert(cx.me(), (self.own_words(cx), cx.start()));
        all
    }

    /// A ready peer, or this one, proposes groups in its own words.
    pub(super) fn may_propose(&self, cx: &Context, peer: PeerId) -> bool {
        let said = self.ready.get(&peer).map(|ready| ready.proposes);
        said.unwrap_or_else(|| peer == cx.me() && proposes(cx, self.attempts))
    }

    /// Who proposes, among the ready peers that share the most common start.
    fn elect(&mut self, cx: &mut Context) -> Formed {
        let all = self.all_ready(cx);
        let ready: Vec<PeerId> = all.keys().copied().collect();
        let enough = self.enough_for_a_group(cx, &ready);
        let without = if enough {
            Formed::NoGroup
        } else {
            Formed::Alone
        };
        let anchor = common_anchor(&all, cx.start(), enough);
        let agreed: Vec<PeerId> = all
            .iter()
            .filter(|(_, (_, a))| *a == anchor)
            .map(|(id, _)| *id)
            .collect();
        // A part of the round is applied already: others may have applied other parts.
        let in_part = cx.anchor.before(cx.round) != cx.anchor();
        if anchor != cx.start() {
            let tolerance = cx.plan.tolerance(electorate(cx, self.attempts));
            // So few may all lie about the anchor, and to follow them would give this peer's own
            // up.
            if !tolerance.believes(agreed.len()) {
                let due = in_part || enough;
                return self.parts_from(cx, &all, due).unwrap_or(without);
            }
            self.end(cx);
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
            return self.parts_from(cx, &all, in_part).unwrap_or(without);
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
                cx.waited(Wait::Group);
                let own = cx.deadlines.allow(Wait::Group, [peer]);
                let deadline = cx.wait(Wait::Group, own + cx.deadlines.answer());
                cx.timers.set(Timer::Exchange, deadline);
                Formed::Waiting
            }
        }
    }

    /// Too few are ready with one anchor: their last group broke up when each knew other decisions of the round. In every other attempt another one is asked for those that it knows, each in its turn: those that
    /// wait for this peer's state get it when an attempt has ended.
    fn parts_from(&mut self, cx: &mut Context, all: &AllReady, due: bool) -> Option<Formed> {
        let others = all.iter().filter(|(_, (_, start))| *start != cx.start());
        let others: Vec<PeerId> = others.map(|(id, _)| *id).collect();
        let turn = self.attempts / 2 % (others.len() as u64).max(1);
        let due = due && signs(cx) && self.attempts % 2 == 1;
        let teller = *others.get(turn as usize).filter(|_| due)?;
        self.alone(cx);
        let resync = false;
        Some(Formed::Outcome(Outcome::Behind { teller, resync }))
    }

    pub(super) fn form(&mut self, cx: &mut Context, group: Group) -> Formed {
        self.end(cx);
        // It has met the members, so from now on it may propose groups of its own.
        cx.this_life.newcomer = false;
        let members = group.members.iter().map(|m| (m.peer, m.said.weight));
        cx.view.grouped(cx.base(), members);
        // Who is in one group is on one side.
        cx.sort_sides();
        group.note(cx);
        Formed::Group(Box::new(group))
    }
}

impl Grouping {
    /// Proposes the ready peers with this anchor, and tells the others that they are behind.
    pub(super) fn propose(&mut self, cx: &mut Context, all: &AllReady, anchor: Digest) -> Formed {
        let (me, round, term) = (cx.me(), cx.round, self.term);
        let shared = all.iter().filter(|(_, (_, theirs))| *theirs == anchor);
        let mut invited: Vec<PeerId> = shared.map(|(id, _)| *id).collect();
        let mut present = invited.clone();
        present.retain(|id| !is_away(cx, *id));
        // Those that are away are left out where the others are enough.
        if self.enough_for_a_group(cx, &present) {
            invited = present;
        }
        let invited = seated(cx, invited);
        let mut members = Vec::new();
        let mut seats = Vec::new();
        for (peer, (said, theirs)) in all {
            if invited.contains(peer) {
                members.push(Member {
                    peer: *peer,
                    said: *said,
                });
                let seat = self.ready.get(peer).and_then(|ready| ready.seat);
                seats.extend(seat.or((*peer == me).then(|| self.own_seat(cx))));
            } else {
                let resync = !cx.starts_from(cx.anchor(), round, *theirs);
                let round = round.next();
                cx.send(*peer, FormingMessage::Behind { round, resync });
            }
        }
        if signs(cx) {
            return self.propose_signed(cx, term, seats);
        }
        cap(&mut members, cx.plan.agreement.weighing);
        match Group::new(&cx.plan, round, members.clone(), me) {
            Some(group) => {
                let around = surroundings(cx, &members);
                let proposed = Proposed {
                    round,
                    term,
                    members,
                };
                for (_, peer) in group.others() {
                    cx.send(peer, proposal(&proposed, &around));
                }
                self.form(cx, group.with_network(around))
            }
            None => Formed::NoGroup, // this peer always has a seat
        }
    }
}

/// The network among the members of a group that this peer proposes, in its words.
fn surroundings(cx: &mut Context, members: &[Member]) -> Surroundings {
    let peers: Vec<PeerId> = members.iter().map(|member| member.peer).collect();
    let places = if cx.plan.names_places() {
        whereabouts(cx, members)
    } else {
        Vec::new()
    };
    Surroundings {
        places,
        links: cx.propose_links(&peers),
    }
}

/// Places of some members, as this peer knows them.
fn whereabouts(cx: &Context, members: &[Member]) -> Vec<Whereabouts> {
    let view = &cx.view;
    let locality = |peer: PeerId| -> Option<&Locality> {
        let record = if peer == cx.me() {
            view.mine()
        } else {
            view.get(peer).and_then(|remote| remote.record())
        };
        record.map(|record| &record.locality)
    };
    let known: Vec<Option<&Locality>> = members.iter().map(|m| locality(m.peer)).collect();
    let site = |index: usize| known[index].and_then(|locality| locality.site.as_ref());
    let first = |index: usize| {
        let there = |other: &usize| site(index).is_some() && site(*other) == site(index);
        (0..index).find(there).unwrap_or(index)
    };
    (0..members.len())
        .map(|index| Whereabouts {
            site: first(index) as u8,
            rate: known[index].and_then(|locality| locality.rate),
        })
        .collect()
}

/// The message that proposes a group, with its members' sites and lines, or links, where the plan goes by them.
fn proposal(proposed: &Proposed, around: &Surroundings) -> FormingMessage {
    let proposed = proposed.clone();
    match (around.places.as_slice(), &around.links) {
        ([], None) => FormingMessage::Propose(proposed),
        ([], Some(links)) => FormingMessage::ProposeLinked {
            proposed,
            links: links.clone(),
        },
        (places, _) => FormingMessage::ProposePlaced {
            proposed,
            places: places.to_vec(),
        },
    }
}

/// Those of the invited peers that a group has room for, this peer among them. Where there are more,
/// the rendezvous hash of run and round picks them, so that each of n peers is in about
/// [`GROUP_MEMBERS_MAX`] of n groups. The same ranks pick the proposer: the peer that proposes after a
/// failure is in the group too, and two proposers that know the same peers pick the same group.
fn seated(cx: &Context, mut invited: Vec<PeerId>) -> SortedSet<PeerId> {
    if invited.len() > GROUP_MEMBERS_MAX {
        let rank = |id: PeerId| (id == cx.me(), rendezvous(&cx.plan.run, cx.round, 0, id), id);
        invited.sort_by_cached_key(|id| Reverse(rank(*id)));
        invited.truncate(GROUP_MEMBERS_MAX);
    }
    invited.into_iter().collect()
}

/// This peer's words about itself in this round.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnWords {
    pub(super) said: Said,
    /// It has said another weight in this round before, by which the proposer may go still.
    pub(super) before: bool,
}

/// Answer to a proposal.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Follow it.
    Join,
    /// Do not follow it; an honest proposer may have made it.
    Decline,
}

/// Judges a proposal that names this peer. `start` is how its sender says that it began the round.
///
/// # Errors
/// When no honest peer proposes this: a group without its proposer, weights above the cap, or
/// another weight for this peer than it stated.
pub(super) fn judge(
    cx: &Context,
    from: PeerId,
    members: &[Member],
    stated: OwnWords,
    start: Option<Digest>,
) -> Result<Verdict, PeerError> {
    let of = |peer| members.iter().find(|member| member.peer == peer);
    forbid(
        of(from).is_none(),
        "a proposal of a group without its proposer",
    )?;
    let weighing = cx.plan.agreement.weighing;
    let most = cap_of(members, weighing);
    if members
        .iter()
        .any(|member| !weighing.allows(member.said.weight))
    {
        return broke("a proposal with a weight that is no count");
    }
    if members.iter().any(|member| member.said.weight > most) {
        return broke("a proposal with a weight far above the others");
    }
    let Some(mine) = of(cx.me()) else {
        return Ok(Verdict::Decline);
    };
    let (mine, said) = (mine.said, stated.said);
    let same = mine.weight.to_bits() == said.weight.min(most).to_bits();
    if !same || mine.taken != said.taken || mine.loss != said.loss {
        return match stated.before {
            // It may go by what this peer said before it trained on.
            true => Ok(Verdict::Decline),
            false => {
                broke("a proposal with another weight, data or loss of this peer than it stated")
            }
        };
    }
    if start.is_some_and(|start| start != cx.start()) {
        return Ok(Verdict::Decline);
    }
    // A few members may be unknown here, because views grow at different speeds. A group that is
    // mostly made of strangers could outvote all peers that this one knows.
    let known = |peer: PeerId| peer == cx.me() || cx.view.get(peer).is_some_and(|r| r.greeted);
    let count = members.iter().filter(|member| known(member.peer)).count();
    if 2 * count > members.len() {
        Ok(Verdict::Join)
    } else {
        Ok(Verdict::Decline)
    }
}

/// A peer that finished training a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) round: Round,
    pub(super) said: Said,
    /// Hash of its anchor, and of the owner's rules where there are any.
    pub(super) anchor: Digest,
    pub(super) proposes: bool,
    /// Its signed words, where members sign.
    pub(super) seat: Option<Seat>,
}

/// The last group that each linked peer has said, or shown, that it is in. Members that sign vote only once a
/// quorum of the group has joined it: a vote binds them to the group, and a group that lacks a quorum decides
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Joined(SortedMap<PeerId, (Round, GroupTag)>);

impl Joined {
    pub(super) fn note(&mut self, peer: PeerId, round: Round, group: GroupTag) {
        self.0.insert(peer, (round, group));
    }

    /// A peer is gone.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    /// A peer is not in this group. It may be in another one.
    pub(super) fn left(&mut self, peer: PeerId, round: Round, group: GroupTag) {
        if self.0.get(&peer) == Some(&(round, group)) {
            self.forget(peer);
        }
    }

    pub(super) fn enough(&self, group: &Group, round: Round) -> bool {
        let here = |peer: &PeerId| self.0.get(peer) == Some(&(round, group.tag));
        let others = group.others().filter(|(_, peer)| here(peer));
        group.decides(1 + others.count())
    }
}
