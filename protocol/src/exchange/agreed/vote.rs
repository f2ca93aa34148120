//! Votes of a fragment's round, and the ballots that replace missing shards.
//!
//! A strict majority of the group must hold, and vote for, the same versions. Promises, votes and the decision are in
//! `agreement`. Here a fragment's round hears its members, votes, fetches the slices that it lacks of the decided
//! versions, and ends. This is where it asks whether members sign: in groups that survive liars they vote, choose
//! coordinators and make plans in `signed`. What follows from a plan is the same.
//!
//! # Ballots above zero
//!
//! What to do when an owner died, perhaps after serving half the group: a member whose wait ends without a result
//! picks the coordinator of the next ballot (rendezvous hash over the members that it still waits for) and sends it a
//! promise. The coordinator asks all members, and makes a plan from a strict majority of promises: versions that were
//! voted for in the highest ballot stay; a shard that some member holds stays; a successor reduces the others again.

use super::agreement::Coordination;
use super::fragment::FragmentRound;
use super::member::{Ballot, ShardPlan, ShardVersion, Versions, vote_of};
use super::message::{FragmentMessage, Promise, Scoped};
use super::owners::ranked;
use super::state::{Duty, FragmentStage, Target};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::id::rendezvous;
use crate::limits::{BALLOTS_MAX, SEARCHES_MAX, VOTE_NAMES_MAX};
use crate::sorted::SortedMap;
use crate::{Attempt, Checked, Digest, Members, PeerId, Wait};
use core::time::Duration;
use std::cmp::Reverse;

impl FragmentRound {
    /// A message of a member, which is answered where the exchange has ended.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(crate) fn hear(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        body: &FragmentMessage,
    ) -> Checked {
        if self.over() {
            // It is still open at the sender, which may lack the names or the decision.
            self.answer(cx, from, body);
            return Ok(());
        }
        let signs = self.agreement.signs();
        match body {
            FragmentMessage::Reduced { shard, version } => {
                return self.on_reduced(cx, from, *shard, *version);
            }
            FragmentMessage::Signed(signed) if signs => return self.on_signed(cx, from, signed),
            FragmentMessage::Signed(_) => {
                return broke("a signed message in a group that signs nothing");
            }
            // An answer about a round that the sender replayed has no proof.
            _ if signs => {}
            FragmentMessage::Vote { ballot, versions } => {
                return self.on_vote(cx, from, *ballot, versions);
            }
            FragmentMessage::VoteFor { ballot, value } => {
                return self.note_vote(cx, from, *ballot, (*value, None));
            }
            FragmentMessage::Query { .. } => self.answer(cx, from, body),
            FragmentMessage::Prepare { ballot } => return self.on_prepare(cx, from, *ballot),
            FragmentMessage::Promise(promise) => return self.on_promise(cx, from, promise),
            FragmentMessage::Repair {
                ballot,
                alive,
                shards,
            } => return self.on_repair(cx, from, *ballot, *alive, shards),
            FragmentMessage::Void { ballot } => self.on_void(cx, from, *ballot),
            FragmentMessage::Nothing => return self.on_nothing(cx, from),
            FragmentMessage::Tally(entries) => return self.scope.on_tally(from, entries),
            FragmentMessage::Collected { .. } => {
                return broke("the results of columns in a group that has none");
            }
            FragmentMessage::Decided {
                ballot, versions, ..
            } => self.on_decided(cx, from, *ballot, versions),
        }
        Ok(())
    }

    /// Votes in the current ballot once every shard is here in the version it is about.
    pub(super) fn vote(&mut self, cx: &mut Context) {
        if self.agreement.signs() {
            self.vote_signed(cx);
            self.settle_signed(cx);
            return;
        }
        if !self.agreement.may_vote() {
            return;
        }
        let ballot = self.agreement.ballot;
        // All or nothing: a vote tells the others that this peer can serve every one of these
        // bytes.
        let Some(versions) = self.all_fitting() else {
            return;
        };
        // Later promises name this vote, so that a coordinator keeps what may be decided by it.
        self.agreement.voted = Some((ballot, versions.clone()));
        let value = vote_of(&versions);
        let group = &self.scope.group;
        self.agreement
            .count(ballot, group.me, (value, Some(&versions)), group.quorum);
        let vote = if versions.len() <= VOTE_NAMES_MAX {
            FragmentMessage::Vote { ballot, versions }
        } else {
            FragmentMessage::VoteFor { ballot, value }
        };
        self.scope.send_all(cx, &vote);
    }

    /// The versions that the current ballot is about, if all of them are here.
    pub(super) fn all_fitting(&self) -> Option<Versions> {
        (0..self.scope.of).map(|s| self.fitting(s)).collect()
    }

    /// Another member's vote, with the versions that it is for.
    fn on_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        versions: &[ShardVersion],
    ) -> Checked {
        let (count, of) = (versions.len(), self.scope.of);
        if count != usize::from(of) {
            return broke(&format!("a vote on {count} shards instead of {of}"));
        }
        let named = (vote_of(versions), Some(versions));
        self.note_vote(cx, from, ballot, named)
    }

    /// Another member's vote for a value, with its versions where it names them.
    fn note_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        vote: (Digest, Option<&[ShardVersion]>),
    ) -> Checked {
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        // Votes are counted for each ballot. If several members could open a ballot zero, votes for
        // the same versions would be spread over all of them.
        let unled = ballot.number == 0 && ballot.coordinator != self.scope.group.peer(0);
        if unled || self.scope.group.index(ballot.coordinator).is_none() {
            return broke("a vote in a ballot that no member of the group coordinates");
        }
        // Ballots above zero have a clock of their own, and say nothing of how long votes take.
        if self.stage != FragmentStage::Repairing {
            // A vote that comes before this peer's own part is done was not waited for.
            let since = if self.stage == FragmentStage::Gathering {
                self.since
            } else {
                cx.now
            };
            cx.deadlines
                .record(Wait::Agreement, from, cx.now.since(since));
        }
        let quorum = self.scope.group.quorum;
        self.agreement.count(ballot, index, vote, quorum);
        self.advance(cx);
        Ok(())
    }

    /// Asks a voter which versions a majority voted for, if this peer cannot tell.
    fn ask_for_names(&mut self, cx: &mut Context) {
        let group = &self.scope.group;
        let Some((value, voters)) = self.agreement.unnamed(group.quorum) else {
            return;
        };
        let waited_for = |peer: &PeerId| group.index(*peer).is_some_and(|i| self.hopeful.has(i));
        // One question at a time: every answer names all shards.
        if self.transfers.asked.as_ref().is_some_and(waited_for) {
            return;
        }
        // Members ask different voters, because every answer names all shards.
        let after = |voter: &usize| (voter + group.members.len() - group.me) % group.members.len();
        let voters = (voters & self.hopeful).without(Members::one(group.me));
        if let Some(voter) = voters.iter().min_by_key(after) {
            let peer = group.peer(voter);
            self.transfers.asked = Some(peer);
            self.scope.send(cx, peer, FragmentMessage::Query { value });
        }
    }

    /// Answers a member's question: with the versions that a value stands for, or with the decision.
    fn answer(&self, cx: &mut Context, from: PeerId, body: &FragmentMessage) {
        let answer = match body {
            FragmentMessage::Query { value } => self.own_vote(*value).or_else(|| self.decision()),
            body if body.asks() => self.decision(),
            _ => None,
        };
        if let Some(answer) = answer {
            cx.send(from, answer);
        }
    }

    /// This peer's vote with its versions, if it is for this value.
    fn own_vote(&self, value: Digest) -> Option<Scoped> {
        let voted = self.agreement.voted.clone();
        let (ballot, versions) = voted.filter(|(_, versions)| vote_of(versions) == value)?;
        let vote = FragmentMessage::Vote { ballot, versions };
        Some(self.scope.scoped(vote))
    }

    /// The decision as a message, once there is one and all of it is here.
    pub(super) fn decision(&self) -> Option<Scoped> {
        if self.agreement.signs() {
            return self.proof();
        }
        self.plain_decision()
    }

    /// The decision as a message without a proof.
    pub(super) fn plain_decision(&self) -> Option<Scoped> {
        let (ballot, versions) = self.agreement.decided.clone()?;
        let signs = self.agreement.signs();
        Some(self.scope.scoped(FragmentMessage::Decided {
            ballot: if signs { 0 } else { ballot },
            members: self.scope.group.members.clone(),
            versions,
        }))
    }

    /// A member that has ended the exchange says how.
    fn on_decided(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: u8,
        versions: &[ShardVersion],
    ) {
        // Members of such groups do not lie, so one that has seen the end is enough.
        if versions.len() == usize::from(self.scope.of) && self.agreement.decided.is_none() {
            self.agreement.decided = Some((ballot, versions.to_vec()));
            self.agreement.told_by = Some(from);
            self.fetch_missing(cx, from);
        }
        self.advance(cx);
    }

    /// Ends the exchange once versions are decided and all of their bytes are here.
    pub(super) fn conclude(&mut self, cx: &mut Context) {
        let Some((number, versions)) = self.agreement.decided.clone() else {
            self.ask_for_names(cx);
            return;
        };
        let lacking = self.lacking(&versions);
        if lacking.is_empty() {
            self.stop_waiting(cx);
            self.apply(cx, number, &versions);
            return;
        }
        // A living owner is still pushing its bytes. Those of a dead one must be fetched from a
        // voter.
        let holder = self.holders_of(&versions).first().copied();
        // While a schedule runs, its aggregates are on their way too.
        let handed_on = self.pipeline.is_none() || (self.pipelining() && !self.broken());
        for (shard, version) in lacking {
            let owner = self.scope.group.index(version.owner);
            let coming = owner.is_some_and(|i| self.hopeful.has(i))
                && (version.attempt > Attempt::FIRST || handed_on);
            if !coming && let Some(holder) = holder {
                self.fetch(cx, shard, &version, holder);
            }
        }
    }

    /// Decided bytes are missing although their owners live: fetches them from one holder after
    /// another. After [`SEARCHES_MAX`] times this peer takes over a newer state.
    pub(super) fn search(&mut self, cx: &mut Context) {
        let Some((_, versions)) = self.agreement.decided.clone() else {
            return;
        };
        let holders = self.holders_of(&versions);
        // The peer that told of the decision had ended the exchange, so it held all bytes then.
        let told_by = self.agreement.told_by.filter(|p| !holders.contains(p));
        let holders: Vec<PeerId> = holders.into_iter().chain(told_by).collect();
        self.transfers.searches += 1;
        self.stop_waiting(cx);
        let next = holders.get(usize::from(self.transfers.searches) % holders.len().max(1));
        let Some(holder) = next.filter(|_| self.transfers.searches <= SEARCHES_MAX) else {
            let first = holders.first().copied();
            self.missed = first.or_else(|| self.scope.group.other_peers().next());
            if self.missed.is_none() {
                self.void(cx);
            }
            return;
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Repair, cx.deadlines.ceiling());
        self.fetch_missing(cx, *holder);
    }

    /// Decided versions whose bytes are not here.
    fn lacking(&self, versions: &[ShardVersion]) -> Vec<(u16, ShardVersion)> {
        let all = (0u16..).zip(versions.iter().copied());
        all.filter(|(s, v)| !self.holdings.has(*s, v) && !self.scope.left_out(v))
            .collect()
    }

    /// Other members that voted for these versions and therefore hold them all.
    fn holders_of(&self, versions: &Versions) -> Vec<PeerId> {
        let group = &self.scope.group;
        let holders = self.agreement.voters_for(versions).into_iter();
        let others = holders.filter(|index| *index != group.me);
        others.map(|index| group.peer(index)).collect()
    }

    /// Fetches decided versions that are not here.
    pub(super) fn fetch_missing(&mut self, cx: &mut Context, holder: PeerId) {
        let Some((_, versions)) = self.agreement.decided.clone() else {
            return;
        };
        for (shard, version) in self.lacking(&versions) {
            self.fetch(cx, shard, &version, holder);
        }
    }

    /// Asks for the next ballot.
    pub(super) fn start_repair(&mut self, cx: &mut Context) {
        if self.agreement.signs() {
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
        let group = &self.scope.group;
        let (run, round) = (&cx.plan.run, self.scope.round);
        let hopeful = (self.hopeful & group.all()).iter();
        let winner = hopeful.max_by_key(|i| rendezvous(run, round, number, group.peer(*i)));
        let (me, coordinator) = (cx.me(), group.peer(winner.unwrap_or(group.me)));
        let ballot = Ballot {
            number,
            coordinator,
        };
        self.enter(cx, ballot);
        if coordinator == me {
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
            pipeline.open = false;
            let of = (self.scope.round, self.scope.fragment);
            cx.send_now(|slice| (slice.round, slice.fragment) == of);
        }
        self.agreement.enter(ballot);
        self.wait_for_repair(
            cx,
            cx.deadlines.answer() * 2 + self.reduction.scores.patience(),
        );
    }

    /// Starts the clock of the next step of a ballot.
    pub(super) fn wait_for_repair(&mut self, cx: &mut Context, allowed: Duration) {
        self.stop_waiting(cx);
        let allowed = self.agreement.stretch(allowed, cx.deadlines.ceiling());
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Repair, allowed);
    }

    /// Sends the promise; if the exchange is decided here already, says so instead.
    pub(super) fn promise(&mut self, cx: &mut Context, to: PeerId, ballot: Ballot) {
        if self.agreement.signs() {
            self.join_ballot(cx, ballot.number);
            return;
        }
        if let Some(message) = self.decision() {
            cx.send(to, message);
            return;
        }
        self.enter(cx, ballot);
        let promise = FragmentMessage::Promise(self.own_promise(ballot));
        self.scope.send(cx, to, promise);
    }

    /// A coordinator asks for a promise.
    fn on_prepare(&mut self, cx: &mut Context, from: PeerId, ballot: Ballot) -> Checked {
        if ballot.coordinator != from || ballot.number == 0 {
            return broke("a ballot that its sender does not coordinate");
        }
        // Below its promise this peer may not vote: an older coordinator gets no answer.
        if ballot >= self.agreement.promised {
            if self.dutiful() {
                self.promise(cx, from, ballot);
            } else {
                // The promise lists the aggregates that this peer holds, so it waits for those that
                // are being reduced.
                self.agreement.asked = Some((from, ballot));
                self.hurry(cx);
            }
        }
        Ok(())
    }

    /// A member goes on without an owner, and its coordinator needs this peer's promise.
    fn hurry(&mut self, cx: &mut Context) {
        if self.scope.may_take_long() && self.stage == FragmentStage::Collecting {
            let soon = cx.now + cx.deadlines.answer() / 2;
            self.deadline = self.deadline.min(soon);
        }
    }

    /// The coordinator's plan arrived.
    fn on_repair(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        alive: Members,
        shards: &[ShardPlan],
    ) -> Checked {
        let fits = shards.len() == usize::from(self.scope.of)
            && alive.is_within(self.scope.group.all())
            && self.scope.names_members(shards);
        if ballot.coordinator != from || !fits {
            return broke("a repair that does not fit the group, or of another coordinator");
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
        // The coordinator has waited for the others in vain, and they contribute nothing to its
        // plan.
        self.suspect(cx, !alive);
        self.wait_for_repair(cx, self.scope.wait_for_repeated(cx));
        for (shard, plan) in (0u16..).zip(shards) {
            let Some(target) = self.target(ballot, shard, plan) else {
                continue;
            };
            if let Some(slot) = self.targets.get_mut(usize::from(shard)) {
                *slot = target;
            }
            if let Some(absence) = target.exact.filter(|v| self.scope.left_out(v)) {
                self.holdings.do_without(shard, absence);
                continue;
            }
            match plan {
                ShardPlan::Keep { version, holder } => {
                    let here = self.fitting(shard).is_some();
                    let own = *holder == cx.me();
                    if !here && !own && !self.is_coming(version, *holder) {
                        self.fetch(cx, shard, version, *holder);
                    }
                }
                ShardPlan::Redo { .. } => {
                    let known = self.reduction.duties.get(&shard);
                    let known = known.is_some_and(|d| d.attempt == ballot.attempt());
                    // A member that did not promise contributes nothing to the new reduction.
                    if target.owner == self.scope.group.me && !known {
                        let expected = alive & self.scope.group.bringing();
                        let duty = Duty::new(ballot.attempt(), expected);
                        self.reduction.duties.insert(shard, duty);
                    }
                    self.contribute(cx, shard);
                    // Its basis may have come before this plan, and waits for it.
                    self.answer_basis(cx, shard);
                }
            }
        }
        self.advance(cx);
    }

    /// The member that made a version is handing it out to all.
    fn is_coming(&self, version: &ShardVersion, holder: PeerId) -> bool {
        let owner = self.scope.group.index(holder);
        let lives = owner.is_some_and(|index| self.hopeful.has(index));
        // A liar may never hand it out, and along a schedule it comes from another member.
        let trusted = !self.agreement.signs() && self.pipeline.is_none();
        version.owner == holder && version.attempt == Attempt::FIRST && lives && trusted
    }

    /// The time of a planned ballot's contributions is over and that of its results begins, as in
    /// the first ballot. Once a ballot, and not where the next one is needed anyway.
    fn waits_for_results(&mut self) -> bool {
        let number = self.agreement.promised.number;
        let planned = !self.agreement.signs() && self.agreement.ballot.number == number;
        // A second extension would wait for a dead member for ever.
        let first = self.agreement.extended < number;
        self.agreement.extended = number;
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

    /// A ballot that leaves a member's contribution out.
    fn absence(&self, ballot: Ballot, part: u16) -> Target {
        let owner = usize::from(part) % self.scope.group.len();
        Target {
            owner,
            attempt: ballot.attempt(),
            exact: Some(ShardVersion {
                owner: self.scope.group.peer(owner),
                attempt: ballot.attempt(),
                contributors: Members::NONE,
                digest: Digest::from_bytes([0; 32]),
            }),
        }
    }

    fn target(&self, ballot: Ballot, shard: u16, plan: &ShardPlan) -> Option<Target> {
        Some(match plan {
            // Only its own member can encode a contribution: if no member holds it, it is left out.
            ShardPlan::Redo { .. } if self.scope.is_gathered() => self.absence(ballot, shard),
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

    /// A member brings no contribution.
    fn on_nothing(&mut self, cx: &mut Context, from: PeerId) -> Checked {
        match self.scope.group.index(from) {
            // Some shard is never summed, so no member can vote.
            Some(_) if self.scope.is_masked() => {
                if self.agreement.decided.is_none() {
                    self.void(cx);
                }
            }
            Some(index) if self.scope.members_return() => {
                self.brings_nothing(index);
                self.advance(cx);
            }
            _ => return broke("a member that brings nothing, where others do not wait for it"),
        }
        Ok(())
    }

    /// The coordinator found no majority.
    fn on_void(&mut self, cx: &mut Context, from: PeerId, ballot: Ballot) {
        // An older coordinator knows less: this peer may already work on a later plan.
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
        if let Some(promised) = self.agreement.promised_so_far() {
            self.suspect(cx, !promised);
            self.plan(cx);
            return;
        }
        // A member that promised and did not contribute is left out of this peer's reductions.
        if self.suspect(cx, self.missing_contributors()) {
            self.wait_for_repair(cx, cx.deadlines.answer());
            self.advance(cx);
            return;
        }
        if self.waits_for_results() {
            self.fetch_overdue(cx);
            let peers = self.scope.group.other_peers();
            self.wait_for_repair(cx, cx.deadlines.allow(Wait::Contributions, peers));
            return;
        }
        // If the plan never came, its coordinator failed. In the next ballot another one is picked,
        // because this one is no longer waited for.
        let coordinator = self.agreement.promised.coordinator;
        let silent = self.agreement.ballot < self.agreement.promised;
        if silent && let Some(index) = self.scope.group.index(coordinator) {
            self.suspect(cx, Members::one(index));
        }
        self.start_repair(cx);
    }

    /// Coordinates a ballot: asks the members that are still waited for to promise.
    fn coordinate(&mut self, cx: &mut Context, ballot: Ballot) {
        // Each promise calls this, and the members are asked once.
        if self.agreement.coordinates(ballot) {
            return;
        }
        self.agreement.coordination = Some(Coordination {
            ballot,
            promises: SortedMap::new(),
            planned: false,
        });
        for (index, peer) in self.scope.group.others() {
            if self.is_told(cx, index) {
                let prepare = FragmentMessage::Prepare { ballot };
                self.scope.send(cx, peer, prepare);
            }
        }
        self.enter(cx, ballot);
        self.wait_for_repair(cx, cx.deadlines.answer() + self.reduction.scores.patience());
        self.note_promise(cx, self.scope.group.me, self.own_promise(ballot));
    }

    fn own_promise(&self, ballot: Ballot) -> Promise {
        Promise {
            ballot,
            voted: self.agreement.voted.clone(),
            held: self.holdings.newest(),
            hopeful: self.hopeful,
        }
    }

    /// A member promises, perhaps unasked: the first whose wait ends picks the coordinator.
    fn on_promise(&mut self, cx: &mut Context, from: PeerId, promise: &Promise) -> Checked {
        let Promise {
            ballot,
            voted,
            held,
            ..
        } = promise;
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        if ballot.coordinator != cx.me() || ballot.number == 0 {
            return broke("a promise to another coordinator");
        }
        let voted_too_high = voted.as_ref().is_some_and(|(b, _)| b >= ballot);
        let versions = voted.iter().flat_map(|(_, versions)| versions);
        let mut versions = versions.chain(held.iter().map(|h| &h.version));
        if voted_too_high || versions.any(|v| self.scope.group.index(v.owner).is_none()) {
            return broke(
                "a promise with a vote of a later ballot, or of a peer outside the group",
            );
        }
        if let Some(message) = self.decision() {
            cx.send(from, message);
            return Ok(());
        }
        // It has promised a higher ballot itself, and may lead none below.
        if *ballot < self.agreement.promised {
            return Ok(());
        }
        self.coordinate(cx, *ballot);
        self.note_promise(cx, index, promise.clone());
        Ok(())
    }

    fn note_promise(&mut self, cx: &mut Context, index: usize, promise: Promise) {
        let Some(coordination) = &mut self.agreement.coordination else {
            return;
        };
        // A promise that comes after the plan changes nothing: members may have voted on it.
        if coordination.ballot != promise.ballot || coordination.planned {
            return;
        }
        let doubted = !promise.hopeful;
        coordination.promises.insert(index, promise);
        let promised = coordination.promises.keys().copied().collect::<Members>();
        // The promising member has waited a whole deadline for these in vain. Waiting for them here
        // as well would only delay the plan.
        self.give_up(doubted.without(promised));
        // Too few are waited for: others that are there may promise until the deadline.
        let may_be_more =
            self.scope.members_return() && !self.scope.group.decides(promised.count());
        if self.hopeful.is_within(promised) && !may_be_more {
            self.plan(cx);
        }
    }

    /// Makes the plan, or finds that there is no majority.
    fn plan(&mut self, cx: &mut Context) {
        let Some(coordination) = &mut self.agreement.coordination else {
            return;
        };
        // One plan for each ballot: two plans could each collect a majority of votes.
        coordination.planned = true;
        let ballot = coordination.ballot;
        let promises = coordination.promises.clone();
        let alive = promises.keys().copied().collect::<Members>();
        // Without a strict majority of promises the others may have decided something that none of
        // these members knows of, so no value is safe. They learn that now, and not at a deadline.
        if !self.scope.group.decides(promises.len()) {
            if self.may_decide_later(cx) {
                self.start_repair(cx);
                return;
            }
            self.tell(cx, alive, &FragmentMessage::Void { ballot });
            self.void(cx);
            return;
        }
        let shards = self.shard_plans(cx, ballot, &promises);
        let again = shards
            .iter()
            .any(|plan| matches!(plan, ShardPlan::Redo { .. }));
        if self.scope.is_masked() && again {
            // A member that brought its contribution is gone, and without it there is no sum.
            self.tell(cx, alive, &FragmentMessage::Void { ballot });
            self.void(cx);
            return;
        }
        let repair = FragmentMessage::Repair {
            ballot,
            alive,
            shards: shards.clone(),
        };
        self.tell(cx, alive, &repair);
        self.follow(cx, ballot, alive, &shards);
    }

    fn tell(&self, cx: &mut Context, members: Members, body: &FragmentMessage) {
        for (_, peer) in self.scope.group.others().filter(|(i, _)| members.has(*i)) {
            self.scope.send(cx, peer, body.clone());
        }
    }

    /// A majority is there, but too few of it promised in time: their own rows may hold them up.
    fn may_decide_later(&self, cx: &Context) -> bool {
        let others = self.scope.group.other_peers();
        let there = 1 + others.filter(|peer| cx.view.takes_part(*peer)).count();
        self.scope.members_return() && self.scope.group.decides(there)
    }

    pub(super) fn shard_plans(
        &self,
        cx: &Context,
        ballot: Ballot,
        promises: &SortedMap<usize, Promise>,
    ) -> Vec<ShardPlan> {
        let group = &self.scope.group;
        let keep = |version: ShardVersion, holder: usize| ShardPlan::Keep {
            version,
            holder: group.peer(holder),
        };
        // Lamport's rule: what was voted for in a lower ballot may be decided already, so the vote
        // of the highest of them stays as it is. The plan is free only if no member has voted.
        let voted = promises
            .iter()
            .filter_map(|(i, p)| p.voted.as_ref().map(|(b, versions)| (*b, *i, versions)))
            .filter(|(_, _, versions)| versions.len() == usize::from(self.scope.of))
            .max_by_key(|(ballot, _, _)| *ballot);
        if let Some((_, voter, versions)) = voted {
            return versions.iter().map(|v| keep(*v, voter)).collect();
        }
        let doubted = promises.values().map(|promise| !promise.hopeful);
        let doubted = doubted.fold(Members::NONE, |all, some| all | some);
        let trusted = |i: usize| !doubted.has(i);
        let alive: Vec<usize> = promises.keys().copied().collect();
        let best = |shard: u16| {
            let all = promises.iter();
            let held = all.flat_map(|(i, p)| p.held.iter().map(move |h| (*i, h)));
            // The first repair trusts every holder. Once it has failed, a shard that only a doubted
            // member holds is reduced again.
            let held = held.filter(|(i, h)| h.shard == shard && (ballot.number < 2 || trusted(*i)));
            held.max_by_key(|(i, h)| (trusted(*i), h.version.attempt, Reverse(*i)))
        };
        // Successors in the order in which owners are chosen, so that a death moves few shards.
        let mut heirs: Vec<usize> = alive.iter().copied().filter(|i| trusted(*i)).collect();
        if heirs.is_empty() {
            heirs = alive;
        }
        let heirs = ranked(cx, group, heirs);
        let plan = |shard| match best(shard) {
            Some((holder, held)) => keep(held.version, holder),
            None => ShardPlan::Redo {
                owner: group.peer(heirs[usize::from(shard) % heirs.len()]),
            },
        };
        (0..self.scope.of).map(plan).collect()
    }
}
