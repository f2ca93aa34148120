//! One fragment's exchange in one group: what is where, and what happens next.
//!
//! Other files continue the work: `reduce` (contributions in, aggregates out), `carry_out` and
//! `handed_on` (the same along a schedule), `agree` (votes), `repair` and `coordinate` (ballots
//! above zero, which replace missing shards). The state that these share is in `state`,
//! `agreement`, `ballots`, `duty` and `pipeline`.

use super::agreement::Agreement;
use super::ballot::ShardVersion;
use super::ballots::Ballots;
use super::duty::Duty;
use super::pipeline::Pipeline;
use super::scope::Scope;
use super::state::{FragmentStage, Reduction, Target, Transfers};
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::{Event, Members, Order, PeerId, Settlement, Time, Wait};
use std::collections::BTreeMap;

/// One fragment's exchange in one group, from the contributions to the decision.
#[derive(Debug)]
pub(super) struct FragmentRound {
    pub(super) scope: Scope,
    pub(super) stage: FragmentStage,
    /// Members that are still waited for.
    pub(super) hopeful: Members,
    /// When the present stage began.
    pub(super) since: Time,
    pub(super) deadline: Time,
    pub(super) reduction: Reduction,
    /// The schedule that ballot zero follows; none where members push directly to the owners.
    pub(super) pipeline: Option<Pipeline>,
    /// Versions this peer holds, shard by shard.
    pub(super) held: BTreeMap<u16, Vec<ShardVersion>>,
    /// The version of each shard that the current ballot is about.
    pub(super) targets: Vec<Target>,
    pub(super) agreement: Agreement,
    pub(super) ballots: Ballots,
    pub(super) transfers: Transfers,
    pub(super) ending: Option<Ending>,
    /// A peer that knows more, when decided slices can no longer be found.
    pub(super) missed: Option<PeerId>,
    /// Whether the peer has been told how it ended.
    pub(super) told: bool,
}

impl FragmentRound {
    /// When this fragment must look again.
    pub(super) fn due(&self) -> Time {
        let signed = self.agreement.signed.as_ref();
        let lock = signed.and_then(|signed| signed.due());
        lock.map_or(self.deadline, |lock| lock.min(self.deadline))
    }

    /// Ends the clocks of all waits: those of the next round have the same names.
    pub(super) fn stop_waiting(&self, cx: &mut Context) {
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.scope.fragment, wait, false);
        }
    }

    /// The version of a shard that fits the current ballot, if it is here.
    pub(super) fn fitting(&self, shard: u16) -> Option<ShardVersion> {
        let target = self.targets.get(usize::from(shard))?;
        let owner = self.scope.group.peer(target.owner);
        let versions = self.held.get(&shard)?;
        let fits = |v: &&ShardVersion| match target.exact {
            Some(exact) => **v == exact,
            None => v.owner == owner && v.attempt == target.attempt,
        };
        versions.iter().find(fits).copied()
    }

    /// Whether nothing is left to do.
    pub(super) fn over(&self) -> bool {
        self.ending.is_some() || self.missed.is_some() || self.is_spent()
    }

    /// Whether no ballot is left in which something could be decided.
    pub(super) fn is_spent(&self) -> bool {
        let signed = self.agreement.signed.as_ref();
        signed.is_some_and(|signed| signed.spent)
    }

    /// Whether this peer's reductions are done.
    pub(super) fn dutiful(&self) -> bool {
        self.reduction.duties.values().all(Duty::done)
    }

    /// Nothing more is expected of these members; gives back who they are.
    pub(super) fn give_up(&mut self, set: Members) -> Vec<PeerId> {
        let set = (set & self.hopeful).without(Members::one(self.scope.group.me));
        self.hopeful = self.hopeful.without(set);
        set.iter().map(|i| self.scope.group.peer(i)).collect()
    }

    /// A member brings no contribution: no reduction waits for it.
    pub(super) fn brings_nothing(&mut self, member: usize) {
        if let Some(member) = self.scope.group.members.get_mut(member) {
            member.weight = 0.0;
        }
        for duty in self.reduction.duties.values_mut() {
            duty.expected = duty.expected.without(Members::one(member));
        }
    }

    /// Whether a member gets messages and bytes: one that is waited for, and in a column each one that is
    /// there. A column of few members may need the votes of those that came back a moment ago.
    pub(super) fn is_told(&self, cx: &Context, member: usize) -> bool {
        let there = |peer| self.scope.within.is_some() && cx.view.takes_part(peer);
        self.hopeful.has(member) || there(self.scope.group.peer(member))
    }

    /// Takes every next step that is possible.
    pub(super) fn advance(&mut self, cx: &mut Context) {
        // The bytes of a fragment that has ended may be released already.
        if self.over() {
            return;
        }
        self.reduce(cx);
        self.advance_pipeline(cx);
        // Votes are awaited only after this peer's own part: until then the others wait for it.
        if self.stage == FragmentStage::Collecting && self.dutiful() && self.pipeline_done() {
            self.gather(cx);
        }
        // Reductions before the promise: it lists the aggregates that this peer holds, and the
        // coordinator has every other shard reduced again. The promise before the vote: after it no
        // vote below that ballot may leave this peer.
        if self.dutiful()
            && let Some((coordinator, ballot)) = self.ballots.asked.take()
        {
            self.promise(cx, coordinator, ballot);
        }
        self.vote(cx);
        // This peer's vote may complete the majority.
        self.conclude(cx);
        // Without the member that failed no further message will come, so there is no reason to
        // wait for the deadline.
        let orphaned = match self.pipelining() {
            true => self.broken(),
            false => {
                self.stage == FragmentStage::Gathering && (self.orphaned() || self.undecidable())
            }
        };
        if self.ending.is_none() && self.agreement.decided.is_none() && orphaned {
            self.start_repair(cx);
        }
    }

    /// This peer's part is done: aggregates and votes are awaited. The wait has a clock of its own,
    /// because it depends on all other members, and the one before only on contributors.
    fn gather(&mut self, cx: &mut Context) {
        cx.waited_in(self.scope.fragment, Wait::Contributions, false);
        self.stage = FragmentStage::Gathering;
        self.since = cx.now;
        if self.agreement.decided.is_some() {
            // Others decided first. Only bytes are missing, and the search for them has a clock.
            return;
        }
        let peers: Vec<PeerId> = self.scope.group.others().map(|(_, p)| p).collect();
        let deadlines = &cx.deadlines;
        let allowed = match &self.pipeline {
            Some(pipeline) => deadlines.allow_chain(Wait::Agreement, peers, pipeline.program.hops),
            None => match &self.scope.within {
                // Another member may have to wait for a row first, as long as this one might have.
                Some(within) => {
                    let rows = deadlines.allow_mates(Wait::Contributions, peers.iter().copied());
                    deadlines.allow_mates(Wait::Agreement, peers) + rows + within.longer
                }
                // Owners wait twice for all members.
                None if self.scope.passes.are_two() => {
                    let second = deadlines.allow(Wait::Contributions, peers.iter().copied());
                    deadlines.allow(Wait::Agreement, peers) + second
                }
                None => deadlines.allow(Wait::Agreement, peers) + self.patience(),
            },
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Agreement, allowed);
    }

    /// Whether a shard is missing whose owner is given up.
    pub(super) fn orphaned(&self) -> bool {
        (0..self.scope.of).any(|shard| {
            let gone = self.targets.get(usize::from(shard));
            let gone = gone.is_some_and(|t| !self.hopeful.has(t.owner));
            gone && self.fitting(shard).is_none()
        })
    }

    /// The deadline has passed.
    pub(super) fn timeout(&mut self, cx: &mut Context) {
        self.insist_if_due(cx);
        if self.over() || cx.now < self.deadline {
            return;
        }
        if self.agreement.decided.is_some() {
            // Only bytes are missing. Another ballot could decide nothing else.
            self.search(cx);
            return;
        }
        if self.pipelining() {
            // A member downstream of a silent one cannot tell which one is silent, so it suspects
            // none.
            self.transfers.overdue = self.scope.group.all();
            self.start_repair(cx);
            return;
        }
        if self.repeats(cx) {
            return;
        }
        let missing = match self.stage {
            FragmentStage::Collecting => self.missing_contributors(),
            // A member that has not voted may lack the same shard as this one, so only the owners
            // of missing shards are given up.
            FragmentStage::Gathering => self.missing_owners(),
            FragmentStage::Repairing => Members::NONE,
        };
        self.transfers.overdue |= missing;
        for peer in self.give_up(missing) {
            cx.suspect(peer);
        }
        match self.stage {
            FragmentStage::Collecting => {
                // What is here is reduced without the missing members. From now on this peer waits
                // for its own Executor only.
                cx.waited_in(self.scope.fragment, Wait::Contributions, true);
                self.deadline = cx.wait_in(
                    self.scope.fragment,
                    Wait::Contributions,
                    cx.deadlines.answer(),
                );
                self.advance(cx);
            }
            FragmentStage::Gathering => {
                self.advance(cx);
                if self.ending.is_none() && self.stage == FragmentStage::Gathering {
                    self.start_repair(cx);
                }
            }
            FragmentStage::Repairing => self.repair_timeout(cx),
        }
    }

    pub(super) fn missing_owners(&self) -> Members {
        let missing = (0..self.scope.of).filter(|s| self.fitting(*s).is_none());
        missing
            .filter_map(|s| self.targets.get(usize::from(s)))
            .map(|target| target.owner)
            .collect()
    }

    /// Ends the fragment without a result: the anchor stays.
    pub(super) fn void(&mut self, cx: &mut Context) {
        self.ending = Some(Ending::Void);
        self.allow_longer(cx);
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.scope.fragment, wait, true);
        }
        // One column is not the fragment.
        if self.scope.within.is_none() {
            cx.emit(Event::Voided {
                round: self.scope.round,
                fragment: self.scope.fragment,
            });
        }
    }

    /// The waits of a void exchange were too short for members that are still linked. No later sample would say
    /// so, because the bytes of an exchange that is over are not sent to their end.
    fn allow_longer(&self, cx: &mut Context) {
        let late = self
            .transfers
            .overdue
            .without(Members::one(self.scope.group.me));
        let late: Vec<PeerId> = late
            .iter()
            .map(|index| self.scope.group.peer(index))
            .collect();
        cx.overdue(Wait::Contributions, late.iter().copied());
        cx.overdue(Wait::Agreement, late);
    }

    /// All decided versions are here: tell the codec which of this peer's contributions counted.
    pub(super) fn apply(&mut self, cx: &mut Context, ballot: u8, versions: &[ShardVersion]) {
        if self.scope.gathered {
            self.gather_in(cx, ballot, versions);
            return;
        }
        let mut aggregates = Vec::with_capacity(versions.len());
        for (shard, version) in (0u16..).zip(versions) {
            let mine = version.contributors.has(self.scope.group.me);
            let outcome = if mine {
                Settlement::Delivered
            } else {
                Settlement::Lost
            };
            let merges = self.scope.group.merges();
            let whole = self.scope.within.is_none();
            if self.scope.passes.are_two() {
                self.settle_second(cx, shard, version);
            } else if self.reduction.encoded.contains_key(&shard) && !merges && whole {
                let slice = self.scope.contribution(shard, self.scope.group.me);
                cx.order(Order::Settle { slice, outcome });
            }
            aggregates.push(self.scope.aggregate(shard, version));
        }
        let names = |set: Members| {
            let known = set.iter().filter_map(|i| self.scope.group.members.get(i));
            known.map(|m| (m.peer, m.weight)).collect()
        };
        let contributors = versions.iter().map(|v| names(v.contributors)).collect();
        let (round, fragment) = (self.scope.round, self.scope.fragment);
        if self.scope.within.is_none() {
            cx.emit(Event::Decided {
                round,
                fragment,
                ballot,
                contributors,
            });
        }
        self.ending = Some(self.scope.ending(aggregates));
    }
}
