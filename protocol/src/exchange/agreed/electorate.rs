//! Which peers count when a group forms, when they are enough ([`Enough`]), and whose turn it is to propose
//! ([`Turns`]). `grouping` decides who is in the group.
//!
//! **Partial all-reduce**: a round continues with the first `enough` peers that are ready and those
//! that arrive within the grace period. Late peers take over the round's result, keep what they
//! trained on top, and take part in the next round. Only forming the group ends sooner; any agreed
//! exchange follows.
//!
//! Cost: none of its own. A round takes as long as its `enough`-th fastest peer and the grace, not
//! as long as the slowest; every late peer costs its helper the bytes of the decided aggregates
//! once more. The grace period is fixed by the plan, or twice the median lateness: of the `Ready`
//! messages that arrived after enough others, as each peer measures it by itself. The proposer's
//! period ends the wait for all, and none is longer than the deadline of the group.
//!
//! Fewer than a majority of the run never form a group, whatever `enough` says: two disjoint groups
//! of one round would leave two anchors. So this is eager-SGD's majority collective, with a count
//! and a grace, and not Prague's or WAGMA's small groups, which mix parameters and agree on
//! nothing.
//!
//! **Source:** Chen et al. 2016, "Revisiting Distributed Synchronous SGD" (backup workers); Li et
//! al. 2020, "Taming unbalanced training workloads in deep learning with partial collective
//! operations" (eager-SGD).

use super::member::Said;
use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::core::view::SEAT_ROUNDS;
use crate::limits::{ABSENT_ROUNDS_MAX, GROUP_MEMBERS_MAX, LOST_MEMBER_WAIT};
use crate::plan::Tolerance;
use crate::sorted::{SortedMap, SortedSet};
use crate::{Digest, Grace, PeerId, Remote, Round, Time, Wait};
use core::time::Duration;

/// Peers that are ready, each with its words and the hash of how it began the round.
pub(super) type AllReady = SortedMap<PeerId, (Said, Digest)>;

/// Live peers that are waited for.
pub(super) fn settled(cx: &Context) -> impl Iterator<Item = PeerId> {
    cx.view
        .live()
        .filter(|(id, r)| !r.probation && !is_away(cx, *id))
        .map(|(id, _)| id)
}

/// Rounds go on without a peer, because it has not contributed for long.
pub(super) fn is_away(cx: &Context, peer: PeerId) -> bool {
    let remote = cx.view.get(peer);
    remote.is_some_and(|remote| remote.conduct.absence.is_away(cx.round))
}

/// This peer proposes groups. A newcomer does not, as it would leave out peers that it has not met;
/// where members sign and all are newcomers, one does once an attempt has failed.
pub(super) fn proposes(cx: &Context, attempts: u64) -> bool {
    !cx.this_life.newcomer || (signs(cx) && attempts > 0)
}

/// Those of the ready peers that come before the others as proposers: they trained, are not away and,
/// `in_their_words`, may propose. All peers hear the same words, so all wait for the same proposer. What
/// each has seen of the others would not do: after a split two peers could wait for each other.
pub(super) fn proposers(
    cx: &Context,
    ready: Vec<PeerId>,
    in_their_words: impl Fn(&PeerId) -> bool,
) -> Vec<PeerId> {
    let ready = active(cx, ready);
    let may = |id: &PeerId| in_their_words(id) && !is_away(cx, *id);
    let known: Vec<PeerId> = ready.iter().copied().filter(may).collect();
    if known.is_empty() { ready } else { known }
}

pub(super) fn signs(cx: &Context) -> bool {
    cx.plan.agreement.signs()
}

/// This peer can expect a proposal of another one that may propose, or of itself.
pub(super) fn can_propose(cx: &Context, peer: PeerId) -> bool {
    let here = |remote: &Remote| remote.linked && !remote.suspected;
    cx.view.get(peer).is_none_or(here) && cx.plan.draws(cx.round, peer) && !is_away(cx, peer)
}

/// The peer that is furthest ahead, if at least half of the others are more than `by` rounds further, in
/// their own words: they continued without this peer. If fewer say so, this peer does not give up.
pub(crate) fn ahead(cx: &Context, by: u64) -> Option<PeerId> {
    let others = || cx.view.of_this_branch().filter(|(_, r)| r.ready);
    let ahead = || others().filter(|(_, r)| r.round.since(cx.round) > by);
    let furthest = ahead().max_by_key(|(id, r)| (r.round, *id));
    let enough = 2 * ahead().count() >= others().count();
    furthest.filter(|_| enough).map(|(id, _)| id)
}

/// The liars among those that take part in rounds.
pub(super) fn tolerance(cx: &Context) -> Tolerance {
    cx.plan.tolerance(electorate(cx, 0).min(GROUP_MEMBERS_MAX))
}

/// Number of peers that take part in rounds, this one included, whether or not they are suspected or
/// fell behind a moment ago. A peer whose link is down, or that has long been behind, is not among
/// them: not for some rounds, and this peer's attempts at this round count as rounds do. Neither is one
/// that lost its seat because it contributed nothing.
pub(super) fn electorate(cx: &Context, attempts: u64) -> usize {
    let recent = |round: Round| cx.round.since(round) + attempts <= ABSENT_ROUNDS_MAX;
    let counts = |remote: &Remote| {
        let present = remote.ready && remote.round.next() >= cx.round;
        let patient = attempts <= ABSENT_ROUNDS_MAX;
        let absence = &remote.conduct.absence;
        // All see the same contributors, but not at the same time who is ready.
        let chance = absence.has_a_chance(cx.round);
        let there = (present && patient) || remote.grouped.is_some_and(recent);
        (there || chance) && !absence.is_away(cx.round)
    };
    if signs(cx) {
        return seats(cx, []);
    }
    let together = cx.view.of_this_branch();
    1 + together.filter(|(_, remote)| counts(remote)).count()
}

/// The same where members sign, and these are ready: they, those whose contributions are in the last results,
/// and those that are linked. Neither failed attempts, a catch-up, a missing link nor a cut-off make those that
/// count fewer: a liar could let attempts fail until a few are enough, and those that catch up would believe no
/// result that a few decide meanwhile.
pub(super) fn seats(cx: &Context, ready: impl IntoIterator<Item = PeerId>) -> usize {
    let contributors = cx.view.seats.of(cx.round);
    let may_be_gone = cx.view.seats.stand_still(cx.now);
    let counts = |(peer, remote): &(PeerId, &Remote)| {
        let may = !remote.banned && !remote.contact.observes;
        // One that never catches up would have a seat at those that it is linked with, and at no others.
        let follows = cx.round.since(remote.round) <= SEAT_ROUNDS as u64;
        may && follows && is_near(cx, *peer) && !is_away(cx, *peer)
    };
    let near = cx.view.iter().filter(counts).map(|(peer, _)| peer);
    let mut seats = contributors;
    seats.retain(|peer| !may_be_gone || is_near(cx, *peer));
    seats.extend(near);
    seats.extend(ready);
    seats.insert(cx.me());
    seats.len()
}

/// A peer is linked, or was a moment ago: a part that is cut off for a moment decides nothing.
fn is_near(cx: &Context, peer: PeerId) -> bool {
    let lost = |since: Time| cx.now.since(since) < LOST_MEMBER_WAIT;
    let near = |remote: &Remote| remote.is_here() || remote.contact.lost.is_some_and(lost);
    cx.view.get(peer).is_some_and(near)
}

/// These peers may form a group: a quorum of those that take part. If they are too few to
/// combine what they bring, the round waits for others that are linked. It would be void, and so would
/// all that follow, while those that catch up never reach it.
pub(super) fn is_enough(cx: &Context, attempts: u64, ready: &[PeerId]) -> bool {
    let count = ready.len();
    let of = if signs(cx) {
        seats(cx, ready.iter().copied())
    } else {
        electorate(cx, attempts)
    };
    let linked = 1 + cx
        .view
        .of_this_branch()
        .filter(|(id, _)| !is_away(cx, *id))
        .count();
    let awaited = cx.plan.too_few(count) && !cx.plan.too_few(linked);
    count >= cx.plan.quorum_of(of) && !awaited
}

/// The anchor that most ready peers share. If enough peers are ready to agree, the
/// highest digest wins a tie, or two halves would stay apart while their void rounds pass; this
/// peer's wins it where they are few, because the others may be together elsewhere.
pub(super) fn common_anchor(all: &AllReady, own: Digest, enough: bool) -> Digest {
    let mut counts: SortedMap<Digest, usize> = SortedMap::new();
    for (_, anchor) in all.values() {
        *counts.entry(*anchor).or_default() += 1;
    }
    let winner = counts
        .into_iter()
        .max_by_key(|(anchor, count)| (*count, !enough && *anchor == own, *anchor));
    winner.map_or(own, |(anchor, _)| anchor)
}

/// Time that the others are waited for. A peer that did not train waits up to the longest deadline:
/// those that did notice late peers much sooner, and one of them proposes.
pub(super) fn allowed(cx: &Context, settled: impl IntoIterator<Item = PeerId>) -> Duration {
    if cx.plan.draws(cx.round, cx.me()) {
        cx.deadlines.allow(Wait::Group, settled)
    } else {
        cx.deadlines.ceiling()
    }
}

/// The ready peers that trained, if any: the others wait for longer before they propose.
fn active(cx: &Context, ready: Vec<PeerId>) -> Vec<PeerId> {
    let drawn = |id: &PeerId| cx.plan.draws(cx.round, *id);
    let active: Vec<PeerId> = ready.iter().copied().filter(drawn).collect();
    if active.is_empty() { ready } else { active }
}

/// A round has enough ready peers, and how long the others are still waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Enough {
    /// Time since which there are enough, and the end of the wait for the others.
    reached: Option<(Time, Time)>,
}

impl Enough {
    /// Once enough peers are ready, the others are waited for a little longer, and not suspected.
    pub(super) fn ready(&mut self, cx: &mut Context, count: usize) {
        let quorum = cx.plan.synchronization.quorum;
        let enough = usize::from(quorum.enough);
        if enough > 0 && self.reached.is_none() && count >= enough {
            let grace = match quorum.grace {
                Grace::Fixed(grace) => grace,
                Grace::Adaptive => cx.deadlines.grace(),
            };
            let until = cx.wait(Wait::Group, grace).min(cx.now + grace);
            self.reached = Some((cx.now, until));
            cx.timers.set(Timer::Exchange, until);
        }
    }

    /// There are enough, and the others have had their time.
    pub(super) fn is_over(self, cx: &Context) -> bool {
        self.reached.is_some_and(|(_, until)| until <= cx.now)
    }

    /// Another peer is ready. If enough were ready before it, this measures its lateness.
    pub(super) fn record_lateness(self, cx: &mut Context) {
        if let Some((since, _)) = self.reached {
            cx.deadlines.record_lateness(cx.now.since(since));
        }
    }
}

/// Whose turn it is to propose a group in one round, and when: after a group that failed another member proposes,
/// and attempts wait longer and longer.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Members whose turn is over: in this attempt, and in this round where members sign.
    pub(super) over: SortedSet<PeerId>,
    /// Before then no group is formed, because attempts failed.
    pause: Time,
    /// Time at which those that are missing are given up.
    deadline: Time,
}

impl Turns {
    /// All have their turn again.
    pub(super) fn forget(&mut self) {
        self.over.clear();
    }

    /// An attempt begins, after others that failed. Gives the time of the next look.
    pub(super) fn begin(&mut self, cx: &Context, failed: u64, deadline: Time) -> Time {
        // Not where members sign: one that lies could have its turn in each attempt.
        if !signs(cx) {
            self.over.clear();
        }
        let pause = match failed {
            _ if !signs(cx) => Duration::ZERO,
            0 | 1 => Duration::ZERO,
            failed => cx.deadlines.answer() / 8 * (1 << (failed - 2).min(4)),
        };
        (self.pause, self.deadline) = (cx.now + pause, deadline);
        if pause.is_zero() {
            deadline
        } else {
            self.pause.min(deadline)
        }
    }

    /// No group is formed yet.
    pub(super) fn pauses(&self, now: Time) -> bool {
        now < self.pause
    }

    /// This is a look before those that are missing are given up.
    pub(super) fn only_paused(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// Time at which those that are missing are given up.
    pub(super) const fn deadline(&self) -> Time {
        self.deadline
    }

    pub(super) fn over(&mut self, proposer: Option<PeerId>) {
        self.over.extend(proposer);
    }

    /// What a member proposes is refused here, so it is another one's turn.
    pub(super) fn refuse(&mut self, cx: &Context, proposer: PeerId) {
        if signs(cx) {
            self.over.insert(proposer);
        }
    }

    pub(super) fn is_over(&self, peer: PeerId) -> bool {
        self.over.contains(&peer)
    }
}

/// Peers that say that the round continues without this one, each with whether its state differs too. A single one
/// may lie: as many must say it as leave one that does not.
#[derive(Debug, Default)]
pub(super) struct Tellers {
    round: Round,
    said: SortedMap<PeerId, bool>,
}

impl Tellers {
    /// Counts a linked peer's word. Returns whether the state differs once enough say that the round
    /// continues without this peer. What fewer say is decided by what this peer hears from all: by
    /// their anchors, or at the deadline by the rounds that they have ended.
    pub(super) fn believed(&mut self, cx: &Context, teller: PeerId, resync: bool) -> Option<bool> {
        let tolerance = tolerance(cx);
        // What was said of an earlier round says nothing of this one.
        if self.round != cx.round {
            self.round = cx.round;
            self.said.clear();
        }
        self.said.insert(teller, resync);
        let differs = self.said.values().filter(|resync| **resync).count();
        let enough = tolerance.believes(self.said.len());
        enough.then_some(tolerance.believes(differs))
    }
}
