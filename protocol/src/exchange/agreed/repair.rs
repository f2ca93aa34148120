//! Ballots above zero: what to do when an owner died, perhaps after serving half the group.
//!
//! A member whose wait ends without a result picks the coordinator of the next ballot (rendezvous
//! hash over the members that it still waits for) and sends it a promise. The coordinator asks all
//! members, and makes a plan from a strict majority of promises: versions that were voted for in
//! the highest ballot stay; a shard that some member holds stays; a successor reduces the others
//! again.

use super::ballot::ShardVersion;
use super::ballot::{Ballot, ShardPlan};
use super::ballots::Promised;
use super::duty::Duty;
use super::fragment::FragmentRound;
use super::message::{FragmentMessage, Promise, Scoped};
use super::state::{FragmentStage, Target};
use crate::core::context::Context;
use crate::limits::BALLOTS_MAX;
use crate::rendezvous::rendezvous;
use crate::{Attempt, Digest, Members, PeerError, PeerId, SliceId, Wait};
use core::time::Duration;

impl FragmentRound {
    /// Asks for the next ballot.
    pub(super) fn start_repair(&mut self, cx: &mut Context) {
        if self.agreement.signed.is_some() {
            self.start_signed_repair(cx);
            return;
        }
        // Above every promise of this peer, because below one it may not vote.
        let number = self.agreement.promised.number + 1;
        if number >= BALLOTS_MAX {
            self.void(cx);
            return;
        }
        // Members that wait for the same peers pick the same coordinator without a message. Others
        // learn of it from its question.
        let hopeful = (self.hopeful & self.scope.group.all()).iter();
        let winner = hopeful.max_by_key(|i| {
            rendezvous(
                &cx.plan.run,
                self.scope.round,
                number,
                self.scope.group.peer(*i),
            )
        });
        let coordinator = self.scope.group.peer(winner.unwrap_or(self.scope.group.me));
        let ballot = Ballot {
            number,
            coordinator,
        };
        self.enter(cx, ballot);
        if coordinator == self.scope.group.peer(self.scope.group.me) {
            self.coordinate(cx, ballot);
        } else {
            self.promise(cx, coordinator, ballot);
        }
    }

    /// Promises not to vote below `ballot` and starts the clock of its answer.
    pub(super) fn enter(&mut self, cx: &mut Context, ballot: Ballot) {
        self.stage = FragmentStage::Repairing;
        // Ballots above zero reduce directly: a schedule cannot go around the member that failed.
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.close();
            let of = (self.scope.round, self.scope.fragment);
            cx.send_now(|slice| (slice.round, slice.fragment) == of);
        }
        if let Some(signed) = &mut self.agreement.signed
            && ballot > self.agreement.promised
        {
            signed.begins_ballot();
        }
        // A promise is never taken back, also not for a lower ballot that arrives later.
        self.agreement.promised = self.agreement.promised.max(ballot);
        self.wait_for_repair(cx, cx.deadlines.answer() * 2 + self.patience());
    }

    /// Starts the clock of the next step of a ballot.
    pub(super) fn wait_for_repair(&mut self, cx: &mut Context, allowed: Duration) {
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.scope.fragment, wait, true);
        }
        let allowed = match &self.agreement.signed {
            // As long as waits are too short here, ballots that follow each other decide nothing.
            Some(signed) => (allowed * signed.patience()).min(cx.deadlines.ceiling().max(allowed)),
            None => allowed,
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Repair, allowed);
    }

    /// Sends the promise; if the exchange is decided here already, says so instead.
    pub(super) fn promise(&mut self, cx: &mut Context, to: PeerId, ballot: Ballot) {
        if self.agreement.signed.is_some() {
            self.pledge_as_asked(cx, ballot.number);
            return;
        }
        if let Some(message) = self.decision() {
            cx.send(to, message);
            return;
        }
        self.enter(cx, ballot);
        let Promised {
            voted,
            held,
            hopeful,
        } = self.own_promise();
        let promise = Promise {
            ballot,
            voted,
            held,
            hopeful,
        };
        cx.send(to, self.scope.scoped(FragmentMessage::Promise(promise)));
    }

    /// The decision as a message, once there is one and all of it is here.
    pub(super) fn decision(&self) -> Option<Scoped> {
        if self.agreement.signed.is_some() {
            return self.proof();
        }
        self.plain_decision()
    }

    /// The decision as a message without a proof.
    pub(super) fn plain_decision(&self) -> Option<Scoped> {
        let (ballot, versions) = self.agreement.decided.clone()?;
        let ballot = match self.agreement.signed {
            Some(_) => 0,
            None => ballot,
        };
        let members = self.scope.group.members.clone();
        Some(self.scope.scoped(FragmentMessage::Decided {
            ballot,
            members,
            versions,
        }))
    }

    /// A coordinator asks for a promise.
    pub(super) fn on_prepare(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
    ) -> Result<(), PeerError> {
        if ballot.coordinator != from || ballot.number == 0 {
            return Err(PeerError::Unexpected {
                what: "a ballot that its sender does not coordinate".to_owned(),
            });
        }
        if ballot >= self.agreement.promised {
            if self.dutiful() {
                self.promise(cx, from, ballot);
            } else {
                // The promise lists the aggregates that this peer holds, so it waits for those that
                // are being reduced.
                self.ballots.asked = Some((from, ballot));
                self.hurry(cx);
            }
        }
        Ok(())
    }

    /// A member goes on without an owner that this peer may still wait for. Rows are waited for much longer
    /// than members of a group that formed a moment ago, and second contributions after first ones; the
    /// coordinator needs this peer's promise.
    fn hurry(&mut self, cx: &mut Context) {
        let may_take_long = self.scope.within.is_some()
            || self.scope.passes.are_two()
            || self.scope.scoring.is_some();
        if may_take_long && self.stage == FragmentStage::Collecting {
            let soon = cx.now + cx.deadlines.answer() / 2;
            self.deadline = self.deadline.min(soon);
        }
    }

    /// The coordinator's plan arrived.
    pub(super) fn on_repair(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        alive: Members,
        shards: &[ShardPlan],
    ) -> Result<(), PeerError> {
        let member = |peer: &PeerId| self.scope.group.index(*peer).is_some();
        let fits = shards.len() == usize::from(self.scope.of)
            && alive.is_within(self.scope.group.all())
            && shards.iter().all(|plan| match plan {
                ShardPlan::Keep { version, holder } => member(&version.owner) && member(holder),
                ShardPlan::Redo { owner } => member(owner),
            });
        if ballot.coordinator != from || !fits {
            return Err(PeerError::Unexpected {
                what: "a repair that does not fit the group, or of another coordinator".to_owned(),
            });
        }
        if ballot >= self.agreement.promised && self.agreement.decided.is_none() {
            self.follow(cx, ballot, alive, shards);
        }
        Ok(())
    }

    /// Works towards a vote on the plan.
    pub(super) fn follow(
        &mut self,
        cx: &mut Context,
        ballot: Ballot,
        alive: Members,
        shards: &[ShardPlan],
    ) {
        self.enter(cx, ballot);
        // From now on this peer votes on the plan of this ballot.
        self.agreement.ballot = ballot;
        let gone = self.give_up(!alive);
        gone.into_iter().for_each(|peer| cx.suspect(peer));
        let peers: Vec<PeerId> = self.scope.group.others().map(|(_, p)| p).collect();
        let allowed = cx.deadlines.allow(Wait::Contributions, peers);
        let passes = if self.scope.passes.are_two() { 2 } else { 1 };
        self.wait_for_repair(cx, allowed * passes);
        for (shard, plan) in (0u16..).zip(shards) {
            let Some(target) = self.target(ballot, shard, plan) else {
                continue;
            };
            if let Some(slot) = self.targets.get_mut(usize::from(shard)) {
                *slot = target;
            }
            match plan {
                _ if target.exact.is_some_and(|v| self.scope.left_out(&v)) => {
                    self.do_without(shard, target.exact);
                }
                ShardPlan::Keep { version, holder } => {
                    let here = self.fitting(shard).is_some();
                    let own = *holder == self.scope.group.peer(self.scope.group.me);
                    if !here && !own && !self.is_coming(version, *holder) {
                        self.fetch(cx, shard, version, *holder);
                    }
                }
                ShardPlan::Redo { .. } => {
                    let known = self.reduction.duties.get(&shard);
                    let known = known.is_some_and(|d| d.attempt == ballot.attempt());
                    // A member that did not promise contributes nothing to the new reduction.
                    if target.owner == self.scope.group.me && !known {
                        self.reduction.duties.insert(
                            shard,
                            Duty::new(ballot.attempt(), alive & self.scope.group.bringing()),
                        );
                    }
                    self.contribute(cx, shard);
                    self.answer_basis(cx, shard);
                }
            }
        }
        self.advance(cx);
    }

    /// Whether the member that made a version is handing it out to all.
    fn is_coming(&self, version: &ShardVersion, holder: PeerId) -> bool {
        let owner = self.scope.group.index(holder);
        let lives = owner.is_some_and(|index| self.hopeful.has(index));
        let trusted = self.agreement.signed.is_none() && self.pipeline.is_none();
        version.owner == holder && version.attempt == Attempt::FIRST && lives && trusted
    }

    /// Whether the time of a planned ballot's contributions is over and that of its results begins, as in
    /// the first ballot. Once a ballot, and not where the next one is needed anyway.
    fn waits_for_results(&mut self) -> bool {
        let number = self.agreement.promised.number;
        let planned = self.agreement.signed.is_none() && self.agreement.ballot.number == number;
        let first = self.ballots.extended < number;
        self.ballots.extended = number;
        planned && first && !self.orphaned()
    }

    /// Fetches the kept versions that should have come by now.
    fn fetch_overdue(&mut self, cx: &mut Context) {
        for (shard, target) in (0u16..).zip(self.targets.clone()) {
            let version = target.exact.filter(|_| self.fitting(shard).is_none());
            if let Some(version) = version.filter(|v| self.is_coming(v, v.owner)) {
                self.fetch(cx, shard, &version, version.owner);
            }
        }
    }

    fn target(&self, ballot: Ballot, shard: u16, plan: &ShardPlan) -> Option<Target> {
        Some(match plan {
            // Only its own member can encode a contribution: if no member holds it, it is left out.
            ShardPlan::Redo { .. } if self.scope.gathered => self.absence(ballot, shard),
            ShardPlan::Keep { version, .. } => Target {
                owner: self.scope.group.index(version.owner)?,
                attempt: version.attempt,
                exact: Some(*version),
            },
            ShardPlan::Redo { owner } => Target {
                owner: self.scope.group.index(*owner)?,
                attempt: ballot.attempt(),
                exact: None,
            },
        })
    }

    /// The coordinator found no majority.
    pub(super) fn on_void(&mut self, cx: &mut Context, from: PeerId, ballot: Ballot) {
        let current = ballot.coordinator == from && ballot >= self.agreement.promised;
        if current && self.agreement.decided.is_none() && self.ending.is_none() {
            self.void(cx);
        }
    }

    /// The ballot's own deadline has passed.
    pub(super) fn repair_timeout(&mut self, cx: &mut Context) {
        if self.lead_timeout(cx) {
            return;
        }
        // This peer coordinates: it plans with the promises that are here.
        if let Some(promised) = self.ballots.promised_so_far() {
            for peer in self.give_up(!promised) {
                cx.suspect(peer);
            }
            self.plan(cx);
            return;
        }
        // A member that promised and did not contribute is left out of this peer's reductions.
        let missing = self.give_up(self.missing_contributors());
        if !missing.is_empty() {
            missing.into_iter().for_each(|peer| cx.suspect(peer));
            self.wait_for_repair(cx, cx.deadlines.answer());
            self.advance(cx);
            return;
        }
        if self.waits_for_results() {
            self.fetch_overdue(cx);
            let peers: Vec<PeerId> = self.scope.group.others().map(|(_, p)| p).collect();
            self.wait_for_repair(cx, cx.deadlines.allow(Wait::Contributions, peers));
            return;
        }
        // If the plan never came, its coordinator failed. In the next ballot another one is picked,
        // because this one is no longer waited for.
        let coordinator = self.agreement.promised.coordinator;
        let silent = self.agreement.ballot < self.agreement.promised;
        if silent && let Some(index) = self.scope.group.index(coordinator) {
            for peer in self.give_up(Members::one(index)) {
                cx.suspect(peer);
            }
        }
        self.start_repair(cx);
    }

    /// A fetch ended.
    pub(super) fn fetched(&mut self, cx: &mut Context, slice: SliceId, digest: Option<Digest>) {
        self.transfers.slices.insert(slice);
        if !self.transfers.fetching.remove(&slice) {
            return;
        }
        // Held are only versions with the expected digest. Other bytes under the same name count
        // for nothing.
        let part = self.scope.part_of(&slice);
        let decided = self
            .agreement
            .decided
            .iter()
            .flat_map(|(_, v)| v.get(usize::from(part)));
        let wanted = self.targets.get(usize::from(part)).and_then(|t| t.exact);
        let version = decided
            .copied()
            .chain(wanted)
            .find(|v| Some(v.digest) == digest && self.scope.aggregate(part, v) == slice);
        if let Some(version) = version {
            self.hold(part, version);
        } else if let Some(held) = self.held.get_mut(&part) {
            // These bytes took the place of those that arrived meanwhile under the same name.
            held.retain(|v| Some(v.digest) == digest || self.scope.aggregate(part, v) != slice);
        }
        self.advance(cx);
    }

    /// A fetch failed. Another member may hold the slice, or the next ballot has it reduced again,
    /// so the deadline comes sooner.
    pub(super) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if self.transfers.fetching.remove(&slice) && !self.over() {
            self.deadline = self.deadline.min(cx.now + cx.deadlines.answer());
        }
    }
}
