//! One fragment's exchange in one group: what is where, and what happens next.
//!
//! Other files continue the work: `reduce` (contributions in, aggregates out), `carry_out` and
//! `handed_on` (the same along a schedule), `agree` (votes), `repair` and `coordinate` (ballots
//! above zero, which replace missing shards). The state that these share is in `state`,
//! `agreement`, `ballots`, `duty` and `pipeline`.

use super::agreement::Agreement;
use super::ballot::{Ballot, ShardVersion};
use super::ballots::Ballots;
use super::duty::Duty;
use super::group::Group;
use super::pipeline::Pipeline;
use super::scope::{Scope, Within};
use super::signed::Testimony;
use super::state::{FragmentStage, Reduction, Target, Task, Transfers};
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::rendezvous::rendezvous;
use crate::schedule::Program;
use crate::{
    Attempt, Event, ExchangeKind, FragmentId, Members, Order, PeerId, Round, Settlement, Time, Wait,
};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The slot of the rendezvous hash that ranks coordinators of signed ballots. Slots zero and one pick
/// proposers and samples.
const LEADERS: u8 = 2;

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
    /// Starts. Members in `lost` were given up in another fragment of the round, and this one does
    /// not wait for them again.
    pub(super) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        program: Option<Arc<Program>>,
        lost: Members,
    ) -> Self {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        let of = super::server::parts(cx, &group, len);
        Self::cut_into(cx, fragment, group, (program, of), lost, None)
    }

    /// The same for a group that agrees on one shard of the fragment, cut into `of` parts. What this
    /// member contributes is known later.
    pub(super) fn within(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        of: u16,
        lost: Members,
        within: Within,
    ) -> Self {
        Self::cut_into(cx, fragment, group, (None, of), lost, Some(within))
    }

    fn cut_into(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        (program, of): (Option<Arc<Program>>, u16),
        lost: Members,
        within: Option<Within>,
    ) -> Self {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        // A schedule cannot cut a fragment that has fewer values than shards: members push
        // directly.
        let program = program.filter(|program| program.shards() as u64 <= len);
        let owners = match within {
            Some(_) => rotated(cx.round, group.len(), of),
            None => super::server::owners(cx, &group, of),
        };
        let first = Ballot {
            number: 0,
            coordinator: group.peer(0),
        };
        let senders = program.as_ref().map_or(!Members::NONE, |p| p.neighbours());
        let peers = group
            .others()
            .filter(|(i, _)| senders.without(lost).has(*i));
        let peers = peers.map(|(_, p)| p);
        let allowed = match &program {
            Some(p) => cx.deadlines.allow_chain(Wait::Contributions, peers, p.hops),
            None => cx.deadlines.allow(Wait::Contributions, peers),
        };
        let allowed = allowed
            + within
                .as_ref()
                .map_or(Duration::ZERO, |within| within.longer);
        let direct = |s: u16| owners.get(usize::from(s)).copied().unwrap_or(0);
        let owner = |s: u16| {
            let scheduled = program.as_ref().map(|p| p.owner(s));
            scheduled.unwrap_or_else(|| direct(s))
        };
        let targets = (0..of)
            .map(|s| Target {
                owner: owner(s),
                attempt: Attempt::FIRST,
                exact: None,
            })
            .collect();
        let pipeline =
            program.map(|program| Pipeline::new(program, !(lost & group.all()).is_empty()));
        let merges = group.merges();
        let (hopeful, mut first) = (group.all().without(lost), Agreement::new(first));
        first.signed = testimony(cx, &group);
        let mut this = Self {
            scope: Scope {
                round: cx.round,
                fragment,
                group,
                of,
                gathered: cx.plan.exchange == ExchangeKind::Gathered && !merges,
                within,
            },
            stage: FragmentStage::Collecting,
            hopeful,
            since: cx.now,
            deadline: cx.wait_in(fragment, Wait::Contributions, allowed),
            reduction: Reduction::default(),
            pipeline,
            held: BTreeMap::new(),
            targets,
            agreement: first,
            ballots: Ballots::default(),
            transfers: Transfers::default(),
            ending: None,
            missed: None,
            told: false,
        };
        if this.scope.gathered {
            this.offer(cx);
            return this;
        }
        if this.pipeline.is_none() {
            this.take_duties(owners);
        }
        if this.scope.within.is_none() {
            this.encode_all(cx);
        }
        this
    }

    /// When this fragment must look again.
    pub(super) fn due(&self) -> Time {
        let signed = self.agreement.signed.as_ref();
        let lock = signed.and_then(|signed| signed.due());
        lock.map_or(self.deadline, |lock| lock.min(self.deadline))
    }

    /// This peer reduces its shards from the contributions of all members that trained.
    fn take_duties(&mut self, owners: Vec<usize>) {
        let (me, bringing) = (self.scope.group.me, self.scope.group.bringing());
        let own = (0u16..).zip(owners).filter(|(_, owner)| *owner == me);
        self.reduction
            .duties
            .extend(own.map(|(shard, _)| (shard, Duty::new(Attempt::FIRST, bringing))));
    }

    /// Encodes every shard of this peer's contribution: in the order of the schedule, or, for the
    /// butterfly, beginning with the next member's, so that members begin with different receivers.
    pub(super) fn encode_all(&mut self, cx: &mut Context) {
        let bringing = self.scope.group.bringing();
        let merges = self.scope.group.merges();
        // Branches are averaged, whatever the rule for contributions is.
        let too_few = match merges {
            true => bringing.is_empty(),
            false => cx.plan.too_few(bringing.count()),
        };
        if too_few {
            // There is no mean if no member trained, and a robust rule needs more than one.
            self.void(cx);
        }
        if too_few || (self.pipeline.is_none() && !bringing.has(self.scope.group.me)) {
            return;
        }
        let (me, of) = (self.scope.group.me as u16, self.scope.of);
        let order = match &self.pipeline {
            Some(pipeline) => pipeline.program.order(),
            None => (1..=of).map(|step| (me + step) % of).collect(),
        };
        for shard in order {
            let order = Order::Encode {
                store: self.scope.source(),
                slice: self.scope.contribution(shard, self.scope.group.me),
                of: self.scope.cut(),
            };
            let order = cx.order(order);
            self.reduction
                .tasks
                .insert(order, Task::Contribution(shard));
        }
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
        self.ending.is_some() || self.missed.is_some()
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
        if self.ending.is_none() && !self.agreement.is_settled() && orphaned {
            self.start_repair(cx);
        }
    }

    /// This peer's part is done: aggregates and votes are awaited. The wait has a clock of its own,
    /// because it depends on all other members, and the one before only on contributors.
    fn gather(&mut self, cx: &mut Context) {
        for wait in [Wait::Contributions, Wait::Repair] {
            cx.waited_in(self.scope.fragment, wait, false);
        }
        self.stage = FragmentStage::Gathering;
        self.since = cx.now;
        let peers: Vec<PeerId> = self.scope.group.others().map(|(_, p)| p).collect();
        let deadlines = &cx.deadlines;
        let allowed = match &self.pipeline {
            Some(pipeline) => deadlines.allow_chain(Wait::Agreement, peers, pipeline.program.hops),
            None => match &self.scope.within {
                // Another member may have to wait for a row first, as long as this one might have.
                Some(within) => {
                    let rows = deadlines.allow(Wait::Contributions, peers.iter().copied());
                    deadlines.allow(Wait::Agreement, peers) + rows + within.longer
                }
                None => deadlines.allow(Wait::Agreement, peers),
            },
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Agreement, allowed);
    }

    /// Whether a shard is missing whose owner is given up.
    fn orphaned(&self) -> bool {
        (0..self.scope.of).any(|shard| {
            let gone = self.targets.get(usize::from(shard));
            let gone = gone.is_some_and(|t| !self.hopeful.has(t.owner));
            gone && self.fitting(shard).is_none()
        })
    }

    /// The deadline has passed.
    pub(super) fn timeout(&mut self, cx: &mut Context) {
        self.lock_if_due(cx);
        if self.over() || cx.now < self.deadline {
            return;
        }
        if self.agreement.is_settled() {
            // Only names or bytes are missing. Another ballot could decide nothing else.
            self.search(cx);
            return;
        }
        if self.pipelining() {
            // A member downstream of a silent one cannot tell which one is silent, so it suspects
            // none.
            self.start_repair(cx);
            return;
        }
        let missing = match self.stage {
            FragmentStage::Collecting => self.missing_contributors(),
            // A member that has not voted may lack the same shard as this one, so only the owners
            // of missing shards are given up.
            FragmentStage::Gathering => self.missing_owners(),
            FragmentStage::Repairing => Members::NONE,
        };
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

    fn missing_owners(&self) -> Members {
        let missing = (0..self.scope.of).filter(|s| self.fitting(*s).is_none());
        missing
            .filter_map(|s| self.targets.get(usize::from(s)))
            .map(|target| target.owner)
            .collect()
    }

    /// Ends the fragment without a result: the anchor stays.
    pub(super) fn void(&mut self, cx: &mut Context) {
        self.ending = Some(Ending::Void);
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
            if self.reduction.encoded.contains_key(&shard) && !merges && whole {
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

/// The owners of a column's parts: as many members as there are parts, others in each round.
fn rotated(round: Round, members: usize, of: u16) -> Vec<usize> {
    let of = usize::from(of);
    let first = (round.0 as usize).wrapping_mul(of);
    (0..of)
        .map(|part| first.wrapping_add(part) % members)
        .collect()
}

/// The signed side of the agreement, where the group survives liars.
fn testimony(cx: &Context, group: &Group) -> Option<Box<Testimony>> {
    let sealed = group.sealed.clone()?;
    let rank = |index: &usize| rendezvous(&cx.plan.run, cx.round, LEADERS, group.peer(*index));
    let mut ranked: Vec<usize> = (0..group.len()).collect();
    ranked.sort_by_key(|index| (std::cmp::Reverse(rank(index)), *index));
    Some(Box::new(Testimony::new(group, sealed, ranked)))
}
