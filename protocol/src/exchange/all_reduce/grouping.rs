//! Forming a round's group: whoever wins the rendezvous hash of (run, round) proposes it once the
//! peers it knows are ready or its deadline has passed. One round trip when all is well; one
//! deadline and the next winner when the proposer is gone.

use super::group::Group;
use crate::exchange::Outcome;
use crate::limits::{GROUP_MEMBERS_MAX, TERMS_MAX};
use crate::peer::context::{Context, rendezvous};
use crate::peer::timers::Timer;
use crate::wire::{Member, Message};
use crate::{Digest, PeerId, Round, Time, Wait};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// A peer that finished training a round.
#[derive(Clone, Copy, Debug)]
struct Ready {
    round: Round,
    weight: f64,
    anchor: Digest,
}

/// What forming a group came to.
pub(super) enum Formed {
    /// Not yet.
    Waiting,
    /// This group.
    Group(Group),
    /// No group, but an outcome.
    Outcome(Outcome),
    /// No proposer answered.
    Nobody,
}

/// The forming of one round's group, and what others said of this round and the next.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    active: bool,
    weight: f64,
    since: Time,
    term: u8,
    tried: BTreeSet<PeerId>,
    proposer: Option<PeerId>,
    ready: BTreeMap<PeerId, Ready>,
    /// Rounds in a row that found no group: by so many this peer is further than those it is with.
    voids: u64,
}

impl Grouping {
    /// Whether this peer has trained and has no group yet.
    pub(super) fn active(&self) -> bool {
        self.active
    }

    /// Whether a peer was told that this one is ready and waits for its word.
    pub(super) fn asked(&self, peer: PeerId) -> bool {
        self.active && (self.proposer == Some(peer) || self.tried.contains(&peer))
    }

    /// This peer's training ended.
    pub(super) fn begin(&mut self, cx: &mut Context, weight: f64) -> Formed {
        self.active = true;
        self.weight = weight;
        self.since = cx.now;
        self.term = 0;
        if cx.newcomer {
            self.voids = 0;
        }
        self.tried.clear();
        self.ready.retain(|_, r| r.round >= cx.round);
        for (peer, ready) in &self.ready {
            if ready.round == cx.round {
                cx.deadlines.record(Wait::Group, *peer, Duration::ZERO); // it waited for us
            }
        }
        self.pick(cx)
    }

    /// The round has a group, or is given up.
    pub(super) fn end(&mut self, cx: &mut Context, expired: bool) {
        if self.active {
            self.active = false;
            cx.waited(Wait::Group, expired);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// Another peer is ready.
    pub(super) fn ready(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        round: Round,
        weight: f64,
        anchor: Digest,
    ) -> Formed {
        self.ready.insert(
            from,
            Ready {
                round,
                weight,
                anchor,
            },
        );
        if !self.active || round != cx.round {
            return Formed::Waiting;
        }
        cx.deadlines
            .record(Wait::Group, from, cx.now.since(self.since));
        self.consider(cx, false)
    }

    /// A peer is gone or was suspected: perhaps nobody is left to wait for, or the proposer is it.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) -> Formed {
        self.ready.remove(&peer);
        match self.active {
            true if self.proposer == Some(peer) => self.next(cx),
            true => self.consider(cx, false),
            false => Formed::Waiting,
        }
    }

    /// Somebody proposes a group.
    pub(super) fn proposed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        round: Round,
        term: u8,
        members: &[Member],
    ) -> Formed {
        if !self.active || round != cx.round {
            if round == cx.round {
                cx.send(from, Message::Decline { round, term });
            }
            return Formed::Waiting;
        }
        match Group::new(round, members.to_vec(), cx.me()) {
            Some(group) => {
                // Whoever was last, none of them took longer than this.
                let waited = cx.now.since(self.since);
                for (_, peer) in group.others().filter(|(_, p)| cx.view.get(*p).is_some()) {
                    cx.deadlines.record(Wait::Group, peer, waited);
                }
                self.form(cx, group, false)
            }
            None => Formed::Waiting,
        }
    }

    /// The deadline has passed.
    pub(super) fn timeout(&mut self, cx: &mut Context) -> Formed {
        if let Some(teller) = ahead(cx) {
            self.end(cx, true);
            let resync = false;
            return Formed::Outcome(Outcome::Behind { teller, resync });
        }
        if self.proposer == Some(cx.me()) {
            for peer in self.missing(cx) {
                cx.suspect(peer);
            }
            return self.consider(cx, true);
        }
        if let Some(proposer) = self.proposer {
            cx.suspect(proposer);
        }
        self.next(cx)
    }

    fn next(&mut self, cx: &mut Context) -> Formed {
        self.tried.extend(self.proposer);
        self.term += 1;
        cx.waited(Wait::Group, true);
        if self.term >= TERMS_MAX {
            self.voids += 1;
            return Formed::Nobody;
        }
        self.pick(cx)
    }

    /// Chooses the proposer and tells it that this peer is ready.
    fn pick(&mut self, cx: &mut Context) -> Formed {
        let me = cx.me();
        // Newcomers do not propose: others may not know yet that they are there.
        let settled: Vec<PeerId> = cx
            .view
            .live()
            .filter(|(_, r)| !r.probation)
            .map(|(id, _)| id)
            .collect();
        let own = (!cx.newcomer || settled.is_empty()).then_some(me);
        let winner = settled
            .iter()
            .copied()
            .filter(|id| !self.tried.contains(id))
            .chain(own)
            .max_by_key(|id| (rendezvous(&cx.plan, cx.round, 0, *id), *id));
        self.proposer = winner;
        let mut allowed = cx.deadlines.allow(Wait::Group, settled);
        match winner {
            Some(peer) if peer != me => {
                // The proposer may use all of its own deadline before it proposes.
                allowed = allowed + allowed / 2 + cx.deadlines.answer();
                let anchor = cx.anchor();
                let message = Message::Ready {
                    round: cx.round,
                    weight: self.weight,
                    anchor,
                };
                cx.send(peer, message);
            }
            _ => {}
        }
        let deadline = cx.wait(Wait::Group, allowed);
        cx.timers.set(Timer::Exchange, deadline);
        self.consider(cx, false)
    }

    /// Live peers that are not ready; newcomers are welcome but not waited for.
    fn missing(&self, cx: &Context) -> Vec<PeerId> {
        let here = |id: &PeerId| self.ready.get(id).is_some_and(|r| r.round == cx.round);
        let live = cx
            .view
            .live()
            .filter(|(_, r)| !r.probation)
            .map(|(id, _)| id);
        live.filter(|id| !here(id)).collect()
    }

    /// Proposes when this peer is the proposer and everybody is ready, or time is up.
    fn consider(&mut self, cx: &mut Context, time_is_up: bool) -> Formed {
        let mine = self.proposer == Some(cx.me());
        if !mine || !(time_is_up || self.missing(cx).is_empty()) {
            return Formed::Waiting;
        }
        self.propose(cx, time_is_up)
    }

    fn propose(&mut self, cx: &mut Context, expired: bool) -> Formed {
        let own = cx.anchor();
        let me = cx.me();
        let mut all: BTreeMap<PeerId, (f64, Digest)> = self
            .ready
            .iter()
            .filter(|(id, r)| r.round == cx.round && cx.view.get(**id).is_some_and(|v| v.linked))
            .map(|(id, r)| (*id, (r.weight, r.anchor)))
            .collect();
        all.insert(me, (self.weight, own));
        let anchor = common_anchor(&all, own);
        let (round, next) = (cx.round, cx.round.next());
        let common = all.values().filter(|(_, theirs)| *theirs == anchor);
        if 2 * common.count().min(GROUP_MEMBERS_MAX) <= electorate(cx, self.voids) {
            if let Some(teller) = ahead(cx) {
                self.end(cx, expired);
                let resync = false;
                return Formed::Outcome(Outcome::Behind { teller, resync });
            }
            self.voids += 1;
            // Slow is not gone: without a majority of those that are linked, agreeing on anything
            // would split the run. The round is void; what was trained stays for the next.
            return Formed::Nobody;
        }
        let mut members = Vec::new();
        for (peer, (weight, theirs)) in &all {
            if *theirs == anchor && members.len() < GROUP_MEMBERS_MAX {
                members.push(Member {
                    peer: *peer,
                    weight: *weight,
                });
            } else if *peer != me {
                let resync = *theirs != anchor;
                cx.send(
                    *peer,
                    Message::Behind {
                        round: next,
                        resync,
                    },
                );
            }
        }
        for member in members.iter().filter(|m| m.peer != me) {
            let members = members.clone();
            cx.send(
                member.peer,
                Message::Propose {
                    round,
                    term: self.term,
                    members,
                },
            );
        }
        match Group::new(round, members.clone(), me) {
            Some(group) => self.form(cx, group, expired),
            None => {
                self.end(cx, expired);
                let teller = members.first().map_or(me, |m| m.peer);
                Formed::Outcome(Outcome::Behind {
                    teller,
                    resync: true,
                })
            }
        }
    }

    fn form(&mut self, cx: &mut Context, group: Group, expired: bool) -> Formed {
        self.end(cx, expired);
        self.voids = 0;
        cx.newcomer = false;
        for (_, peer) in group.others() {
            if let Some(remote) = cx.view.get_mut(peer) {
                remote.settle();
            }
        }
        Formed::Group(group)
    }
}

/// A peer that ended the round which this one has no group for: it went on without this one.
fn ahead(cx: &Context) -> Option<PeerId> {
    let others = || cx.view.greeted().filter(|(_, r)| r.ready);
    let ahead = || others().filter(|(_, r)| r.round > cx.round);
    let furthest = ahead().max_by_key(|(id, r)| (r.round, *id));
    furthest.map(|(id, _)| id)
}

/// How many peers take part in rounds, this one included, whether or not they are suspected. A
/// peer whose link is down, or that is rounds behind, is not among them: but rounds that this one
/// went on without a group make nobody else a straggler.
fn electorate(cx: &Context, voids: u64) -> usize {
    let present = |round: Round| cx.round.since(round) <= 1 + voids;
    let others = cx
        .view
        .greeted()
        .filter(|(_, r)| r.ready && (!r.probation || r.round > cx.round) && present(r.round));
    1 + others.count()
}

/// The anchor that most ready peers share; the proposer's own wins a tie.
fn common_anchor(all: &BTreeMap<PeerId, (f64, Digest)>, own: Digest) -> Digest {
    let mut counts: BTreeMap<Digest, usize> = BTreeMap::new();
    for (_, anchor) in all.values() {
        *counts.entry(*anchor).or_default() += 1;
    }
    let winner = counts
        .into_iter()
        .max_by_key(|(anchor, count)| (*count, *anchor == own));
    winner.map_or(own, |(anchor, _)| anchor)
}
