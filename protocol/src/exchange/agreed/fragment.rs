//! One fragment's exchange in one group: its state and its transitions.
//!
//! Four other files continue the work: `reduce` (contributions in, aggregates out), `carry_out` (the same along a
//! schedule), `vote` (votes, and ballots that replace missing shards) and `signed` (the same where members may lie).
//! What they share has types of its own: `scope` (the subject), `state`, `agreement` and `pipeline`. What
//! only some exchanges have borrows these: `scorer`, and `column` in a grid.

use super::agreement::Agreement;
use super::group::Group;
use super::member::{Ballot, ShardVersion};
use super::pipeline::Pipeline;
use super::scope::{Reduce, Scope};
use super::scorer::Scorer;
use super::state::{Duty, FragmentStage, Holdings, Reduction, Target, Task, Transfers};
use super::testimony::Testimony;
use crate::core::FetchId;
use crate::core::context::{Context, SendTurn, Waiting};
use crate::exchange::{Arrived, PushEnd, broke, forbid, settlement};
use crate::schedule::Program;
use crate::sorted::SortedSet;
use crate::{
    Attempt, Checked, Digest, Ending, Event, FragmentId, Layers, Members, Order, Output, Part,
    PeerId, PushOutcome, SliceId, SliceMeta, Source, Tag, Time, Wait,
};
use std::sync::Arc;

/// Repetitions of a push that certainly failed.
const PUSH_RETRIES: u8 = 2;

/// One fragment's exchange in one group, from the contributions to the decision.
#[derive(Debug)]
pub(crate) struct FragmentRound {
    pub(super) scope: Scope,
    pub(super) stage: FragmentStage,
    pub(super) hopeful: Members,
    /// Begin of the present stage.
    pub(super) since: Time,
    pub(super) deadline: Time,
    pub(super) reduction: Reduction,
    /// The schedule that ballot zero follows; none where members push directly to the owners.
    pub(super) pipeline: Option<Pipeline>,
    pub(super) holdings: Holdings,
    /// The version of each shard that the current ballot is about.
    pub(super) targets: Vec<Target>,
    pub(super) agreement: Agreement,
    pub(super) transfers: Transfers,
    pub(crate) ending: Option<Ending>,
    /// A peer that knows more, when decided slices can no longer be found.
    pub(crate) missed: Option<PeerId>,
    /// Set once the peer has been told how it ended.
    pub(super) told: bool,
}

impl FragmentRound {
    /// Starts, without waiting again for members that were `lost` in another fragment.
    pub(super) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        program: Option<Arc<Program>>,
        lost: Members,
    ) -> Self {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        // A schedule cannot cut a fragment that has fewer values than shards: members push
        // directly.
        let program = program.filter(|program| program.shards() as u64 <= len);
        let reduce = Reduce::of(&cx.plan, &group);
        let scope = Scope {
            round: cx.round,
            fragment,
            of: match &program {
                Some(program) => program.shards() as u16,
                None => reduce.parts(&cx.plan, len, group.len()),
            },
            group,
            reduce,
        };
        Self::about(cx, scope, program, lost)
    }

    /// Starts with this subject.
    pub(super) fn about(
        cx: &mut Context,
        scope: Scope,
        program: Option<Arc<Program>>,
        lost: Members,
    ) -> Self {
        let (fragment, group) = (scope.fragment, &scope.group);
        let first = Ballot {
            number: 0,
            coordinator: group.peer(0),
        };
        let owned = scope.first_owners(cx);
        let allowed = scope.wait_for_contributions(cx, program.as_deref(), lost);
        let targets = targets(scope.of, program.as_deref(), &owned);
        let pipeline =
            program.map(|program| Pipeline::new(program, !(lost & group.all()).is_empty()));
        let mut this = Self {
            stage: FragmentStage::Collecting,
            hopeful: group.all().without(lost),
            since: cx.now,
            deadline: cx.wait_in(fragment, Wait::Contributions, allowed),
            reduction: Reduction::default(),
            pipeline,
            holdings: Holdings::default(),
            targets,
            agreement: Agreement::new(first, testimony(cx, group)),
            scope,
            transfers: Transfers::default(),
            ending: None,
            missed: None,
            told: false,
        };
        match this.scope.reduce {
            Reduce::Gathered(_) => {
                this.offer(cx);
                if this.scope.scores() {
                    this.scorer().take_duty();
                }
            }
            // What a member of a column contributes is known once its row has summed it.
            Reduce::Column(_) => this.take_duties(owned),
            _ => {
                if this.pipeline.is_none() {
                    this.take_duties(owned);
                }
                this.encode_all(cx);
            }
        }
        this
    }

    /// This peer reduces its shards from the contributions of all members that trained.
    fn take_duties(&mut self, owners: Vec<usize>) {
        let (me, bringing) = (self.scope.group.me, self.scope.group.bringing());
        let own = (0u16..).zip(owners).filter(|(_, owner)| *owner == me);
        let duties = own.map(|(shard, _)| (shard, Duty::new(Attempt::FIRST, bringing)));
        self.reduction.duties.extend(duties);
    }

    /// Encodes every shard of this peer's contribution: in the order of the schedule, or, for the
    /// butterfly, beginning with the next member's, so that members begin with different receivers.
    pub(super) fn encode_all(&mut self, cx: &mut Context) {
        let bringing = self.scope.group.bringing();
        if self.scope.too_few(&cx.plan, bringing.count()) {
            return self.void(cx);
        }
        // Along a schedule a member that brings nothing still passes on the sums of others.
        if self.pipeline.is_none() && !bringing.has(self.scope.group.me) {
            return;
        }
        let (me, of) = (self.scope.group.me as u16, self.scope.of);
        let order = match &self.pipeline {
            Some(pipeline) => pipeline.program.order(),
            None => (1..=of).map(|step| (me + step) % of).collect(),
        };
        for shard in order {
            let slice = self.scope.contribution(shard, self.scope.group.me);
            self.encode(cx, slice, self.scope.source(), Task::Contribution(shard));
        }
    }

    /// Time of the next look at this fragment.
    pub(crate) fn due(&self) -> Time {
        let lock = self.agreement.due();
        lock.map_or(self.deadline, |lock| lock.min(self.deadline))
    }

    /// Ends the clocks of all waits: those of the next round have the same names.
    pub(super) fn stop_waiting(&self, cx: &mut Context) {
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.scope.fragment, wait);
        }
    }

    /// Orders work of the Executor for this fragment.
    pub(super) fn order(&mut self, cx: &mut Context, order: Order, task: Task) {
        self.reduction.order(cx, order, task);
    }

    /// Orders the bytes of a slice of this fragment.
    pub(super) fn encode(&mut self, cx: &mut Context, slice: SliceId, from: Source, task: Task) {
        let of = self.scope.cut();
        self.order(cx, Order::Encode { slice, of, from }, task);
    }

    /// The evaluation of the others' contributions.
    pub(super) fn scorer(&mut self) -> Scorer<'_> {
        Scorer {
            scope: &self.scope,
            holdings: &self.holdings,
            reduction: &mut self.reduction,
        }
    }

    /// The version of a shard that fits the current ballot, if it is here.
    pub(super) fn fitting(&self, shard: u16) -> Option<ShardVersion> {
        let target = self.targets.get(usize::from(shard))?;
        let owner = self.scope.group.peer(target.owner);
        self.holdings.fitting(shard, target, owner)
    }

    /// Nothing is left to do and no more slices are needed, or no ballot is left.
    pub(crate) fn over(&self) -> bool {
        self.ending.is_some() || self.missed.is_some() || self.agreement.is_spent()
    }

    /// This peer's reductions are done.
    pub(super) fn dutiful(&self) -> bool {
        self.reduction.duties.values().all(Duty::done)
    }

    /// Nothing more is expected of these members; gives back who they are.
    pub(super) fn give_up(&mut self, set: Members) -> Vec<PeerId> {
        // Others may doubt this peer. It never gives up itself: nothing would end that wait.
        let set = (set & self.hopeful).without(Members::one(self.scope.group.me));
        self.hopeful = self.hopeful.without(set);
        set.iter().map(|i| self.scope.group.peer(i)).collect()
    }

    /// Expects nothing more of these members, and suspects them; false if there is none.
    pub(super) fn suspect(&mut self, cx: &mut Context, set: Members) -> bool {
        let given_up = self.give_up(set);
        given_up.iter().for_each(|peer| cx.suspect(*peer));
        !given_up.is_empty()
    }

    /// A member's link is gone, or it is in another group.
    pub(crate) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        if let Some(index) = self.scope.group.index(peer) {
            self.give_up(Members::one(index));
            self.advance(cx);
        }
    }

    /// A peer is in the group.
    pub(crate) fn has(&self, peer: PeerId) -> bool {
        self.scope.group.index(peer).is_some()
    }

    /// A member brings no contribution: no reduction waits for it.
    pub(super) fn brings_nothing(&mut self, member: usize) {
        if let Some(member) = self.scope.group.members.get_mut(member) {
            member.said.weight = 0.0;
        }
        for duty in self.reduction.duties.values_mut() {
            duty.expected = duty.expected.without(Members::one(member));
        }
    }

    /// A member gets messages and bytes: one that is waited for, or may have come back.
    pub(super) fn is_told(&self, cx: &Context, member: usize) -> bool {
        let there = |peer| self.scope.members_return() && cx.view.takes_part(peer);
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
            && let Some((coordinator, ballot)) = self.agreement.asked.take()
        {
            self.promise(cx, coordinator, ballot);
        }
        self.vote(cx);
        // This peer's vote may complete the majority.
        self.conclude(cx);
        // Without the member that failed no further message will come, so there is no reason to
        // wait for the deadline.
        let orphaned = if self.pipelining() {
            self.broken()
        } else {
            self.stage == FragmentStage::Gathering && (self.orphaned() || self.undecidable())
        };
        if self.ending.is_none() && self.agreement.decided.is_none() && orphaned {
            self.start_repair(cx);
        }
    }

    /// This peer's part is done: aggregates and votes are awaited. The wait has a clock of its own,
    /// because it depends on all other members, and the one before only on contributors.
    fn gather(&mut self, cx: &mut Context) {
        cx.waited_in(self.scope.fragment, Wait::Contributions);
        self.stage = FragmentStage::Gathering;
        self.since = cx.now;
        if self.agreement.decided.is_some() {
            // Others decided first. Only bytes are missing, and the search for them has a clock.
            return;
        }
        let allowed = match &self.pipeline {
            Some(pipeline) => {
                let (peers, hops) = (self.scope.group.other_peers(), pipeline.program.hops);
                cx.deadlines.allow_chain(Wait::Agreement, peers, hops)
            }
            None => self.scope.wait_for_votes(cx) + self.reduction.scores.patience(),
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Agreement, allowed);
    }

    /// A shard is missing whose owner is given up, or this peer, which may not make it of what came.
    pub(super) fn orphaned(&self) -> bool {
        let mine = |shard| self.scope.is_masked() && !self.reduction.duties.contains_key(&shard);
        (0..self.scope.of).any(|shard| {
            let owner = self.targets.get(usize::from(shard)).map(|t| t.owner);
            let gone = owner.is_some_and(|owner| match owner == self.scope.group.me {
                true => mine(shard),
                false => !self.hopeful.has(owner),
            });
            gone && self.fitting(shard).is_none()
        })
    }

    /// The deadline has passed.
    pub(crate) fn timeout(&mut self, cx: &mut Context) {
        // Signed statements have times of their own, which may come before the deadline.
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
        self.suspect(cx, missing);
        match self.stage {
            FragmentStage::Collecting => {
                // What is here is reduced without the missing members. From now on this peer waits
                // for its own Executor only.
                let (fragment, answer) = (self.scope.fragment, cx.deadlines.answer());
                cx.waited_in(fragment, Wait::Contributions);
                self.deadline = cx.wait_in(fragment, Wait::Contributions, answer);
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

    /// Members whose part is missing: contributions, then aggregates, then votes.
    pub(crate) fn awaited(&self) -> Vec<PeerId> {
        // Without a vote of its own, a member may still wait for others itself.
        let silent = || self.hopeful.without(self.agreement.voters());
        let members = match self.stage {
            FragmentStage::Collecting if self.pipelining() => self.missing_in_pipeline(),
            FragmentStage::Collecting => self.missing_contributors(),
            FragmentStage::Gathering => match self.missing_owners() & self.hopeful {
                owners if owners.is_empty() => silent(),
                owners => owners,
            },
            FragmentStage::Repairing => silent(),
        };
        let others = self.scope.group.others();
        let awaited = others.filter(|(index, _)| members.has(*index));
        awaited.map(|(_, peer)| peer).collect()
    }

    /// Owners of shards that are not here in the version that the current ballot is about.
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
        // Before the clocks stop: it counts who was late in the waits that are still open.
        self.allow_longer(cx);
        self.stop_waiting(cx);
        if self.scope.is_whole_fragment() {
            cx.emit(Event::Voided {
                round: self.scope.round,
                fragment: self.scope.fragment,
            });
        }
    }

    /// The waits of a void exchange were too short for members that are still linked. No later sample would say
    /// so, because the bytes of an exchange that is over are not sent to their end.
    fn allow_longer(&self, cx: &mut Context) {
        let others = self.scope.group.others();
        let late = others.filter(|(index, _)| self.transfers.overdue.has(*index));
        let late: Vec<PeerId> = late.map(|(_, peer)| peer).collect();
        cx.overdue(Wait::Contributions, late.iter().copied());
        cx.overdue(Wait::Agreement, late);
    }

    /// All decided versions are here: tell the codec which of this peer's contributions counted.
    pub(super) fn apply(&mut self, cx: &mut Context, ballot: u8, versions: &[ShardVersion]) {
        if self.scope.is_gathered() {
            self.gather_in(cx, ballot, versions);
            return;
        }
        let mut aggregates = Vec::with_capacity(versions.len());
        for (shard, version) in (0u16..).zip(versions) {
            match self.scope.reduce {
                Reduce::TwoPasses => self.settle_second(cx, shard, version),
                Reduce::Means | Reduce::Masked if self.reduction.encoded.contains_key(&shard) => {
                    let outcome = settlement(version.contributors.has(self.scope.group.me));
                    let slice = self.scope.contribution(shard, self.scope.group.me);
                    cx.order(Order::Settle { slice, outcome });
                }
                // No codec keeps anything of a branch, nor of a row's mean.
                _ => {}
            }
            aggregates.push(self.scope.aggregate(shard, version));
        }
        let names = |set: Members| {
            let known = set.iter().filter_map(|i| self.scope.group.members.get(i));
            known.map(|m| (m.peer, m.said.weight)).collect()
        };
        let contributors = versions.iter().map(|v| names(v.contributors)).collect();
        if self.scope.is_whole_fragment() {
            self.scope.emit_decided(cx, ballot, contributors);
        }
        self.ending = Some(self.scope.ending(aggregates));
    }

    /// A slice of this exchange arrived.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(crate) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Checked {
        let (from, slice, meta) = (arrived.from, arrived.slice, arrived.meta);
        let Some(index) = self.scope.group.index(from) else {
            return broke("a slice from a peer outside the group");
        };
        let ballots = self.agreement.ballots_max();
        let contributors = self.scope.contributors_of(index, &slice, &meta, ballots)?;
        let handed_on = slice.part == Part::Aggregate && slice.attempt == Attempt::FIRST;
        // A schedule lets members bring what others made, so it checks the sender by its own rules.
        if slice.part == Part::Partial || (handed_on && self.pipeline.is_some()) {
            return self.pipeline_arrived(cx, arrived, index, contributors);
        }
        forbid(slice.origin != from, "a slice that its sender did not make")?;
        match (slice.part, arrived.digest) {
            (Part::Partial | Part::Bundle, _) => {}
            (Part::Basis, _) => self.basis_arrived(cx, index, slice, contributors),
            (Part::Second, _) => self.second_arrived(index, slice),
            (Part::Contribution | Part::RowMean, _) => {
                self.transfers.slices.insert(slice);
                self.pipeline_came(cx, index, slice, Members::one(index));
                // The weight of a row is known only with its mean; until then it counted as one.
                if let Tag::RowMean { weight, .. } = meta.tag {
                    self.scope.group.members[index].said.weight = weight;
                }
                let part = self.scope.part_of(&slice);
                *self.reduction.here.entry(part).or_default() |= Members::one(index);
                let waited = self.scope.waited_since(cx.now, self.since);
                // One that came after the deadline counts too: otherwise a deadline that is too short
                // would stay so. Where members may lie, it would let a late one slow all others.
                let in_time = self.stage == FragmentStage::Collecting;
                let counts = in_time || (!self.agreement.signs() && !self.over());
                if counts && self.pipeline.is_none() {
                    cx.deadlines.record(Wait::Contributions, from, waited);
                }
            }
            (Part::Aggregate | Part::Scores, Some(digest)) => {
                self.aggregate_arrived(from, &slice, contributors, digest)?;
                if self.scope.scores() && slice.part == Part::Aggregate && !self.over() {
                    let waited = cx.now.since(self.since);
                    cx.deadlines.record(Wait::Contributions, from, waited);
                }
            }
            (Part::Aggregate | Part::Scores, None) => {
                return broke("an aggregate without a digest");
            }
        }
        self.advance(cx);
        Ok(())
    }

    fn aggregate_arrived(
        &mut self,
        from: PeerId,
        slice: &SliceId,
        contributors: Members,
        digest: Digest,
    ) -> Checked {
        let part = self.scope.part_of(slice);
        if !contributors.is_within(self.scope.group.all()) || contributors.is_empty() {
            return broke("an aggregate of contributors outside the group");
        }
        let version = ShardVersion {
            owner: from,
            attempt: slice.attempt,
            contributors,
            digest,
        };
        self.holdings.came(part, version)?;
        self.transfers.slices.insert(*slice);
        if slice.attempt == Attempt::FIRST {
            // The first bytes stand: if their maker votes for others, it served two versions.
            self.transfers.given.entry(part).or_insert(digest);
        }
        Ok(())
    }

    pub(super) fn hold(&mut self, shard: u16, version: ShardVersion) {
        let slice = self.scope.aggregate(shard, &version);
        self.transfers.slices.insert(slice);
        self.holdings.hold(shard, version);
    }

    /// Pushes a slice to a member, in the order of the schedule where it says one.
    pub(super) fn push(&mut self, cx: &mut Context, to: PeerId, slice: SliceId, meta: SliceMeta) {
        self.transfers.metas.insert(slice, meta);
        let down = slice.part == Part::Aggregate;
        let needed = u8::try_from(slice.fragment.0).map_or(u8::MAX / 2, |at| at.min(u8::MAX / 2));
        // Aggregates overtake contributions, because they end an exchange. With priorities, the
        // fragment that is needed first overtakes both. Decoupled, contributions leave as they come,
        // and only aggregates have an order.
        let first_needed = match cx.plan.overlap.layers {
            Layers::ByPriority | Layers::IntoForward => needed,
            Layers::Decoupled if down => needed,
            Layers::Together | Layers::AsReady | Layers::Decoupled => 0,
        };
        let priority = match cx.plan.overlap.layers {
            Layers::Decoupled => first_needed + u8::from(down),
            _ => 2 * first_needed + u8::from(!down),
        };
        let open = self.pipeline.as_ref().filter(|pipeline| pipeline.open);
        let turns = open.and_then(|pipeline| pipeline.program.turns());
        let (Some(turns), Some(index)) = (turns, self.scope.group.index(to)) else {
            cx.push(to, slice, meta, priority);
            return;
        };
        let turn = SendTurn {
            round: slice.round,
            needed: first_needed,
            fragment: slice.fragment,
            place: turns.place(slice.shard, index, down),
        };
        let window = turns.window;
        let send = Waiting {
            meta,
            priority,
            window,
        };
        cx.push_in_turn(turn, to, slice, send);
    }

    /// A push ended. One that certainly failed is repeated while it can still help.
    pub(crate) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        // The exchange may have ended here while others still lack this aggregate.
        let open = self.transfers.slices.contains(&slice)
            && (!self.over() || slice.part == Part::Aggregate);
        let index = self.scope.group.index(to);
        let hopeful = index.is_some_and(|index| self.hopeful.has(index));
        if outcome != PushOutcome::Lost || !open || !hopeful {
            return;
        }
        let tries = self.transfers.retries.entry((to, slice)).or_default();
        // A receiver that lacks the slice gets it in the next ballot, or fetches it from a voter.
        if *tries >= PUSH_RETRIES {
            return;
        }
        *tries += 1;
        if let Some(meta) = self.transfers.metas.get(&slice).copied() {
            self.push(cx, to, slice, meta);
        }
    }

    /// Fetches one version from a member that holds it.
    pub(super) fn fetch(
        &mut self,
        cx: &mut Context,
        shard: u16,
        version: &ShardVersion,
        holder: PeerId,
    ) {
        let slice = self.scope.aggregate(shard, version);
        if self.transfers.fetching.insert(slice) {
            let deadline = cx.now + cx.deadlines.ceiling();
            cx.put(Output::Fetch {
                what: FetchId::Slice(slice),
                from: vec![holder],
                deadline,
            });
        }
    }

    pub(crate) fn fetched(&mut self, cx: &mut Context, slice: SliceId, digest: Option<Digest>) {
        self.transfers.slices.insert(slice);
        // It is not waited for any more, but its bytes are here and have to be released.
        if !self.transfers.fetching.remove(&slice) {
            return;
        }
        // Held are only versions with the expected digest. Other bytes under the same name count
        // for nothing.
        let part = self.scope.part_of(&slice);
        // Both the decision and the present ballot may want these bytes.
        let decided = self.agreement.decided.iter();
        let decided = decided.flat_map(|(_, v)| v.get(usize::from(part)));
        let wanted = self.targets.get(usize::from(part)).and_then(|t| t.exact);
        let version = decided
            .copied()
            .chain(wanted)
            .find(|v| Some(v.digest) == digest && self.scope.aggregate(part, v) == slice);
        if let Some(version) = version {
            self.hold(part, version);
        } else {
            let same = |v: &ShardVersion| self.scope.aggregate(part, v) == slice;
            self.holdings.overwritten(part, digest, same);
        }
        self.advance(cx);
    }

    /// A fetch failed. Another member or ballot may help, so the deadline comes sooner.
    pub(crate) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if self.transfers.fetching.remove(&slice) && !self.over() {
            self.deadline = self.deadline.min(cx.now + cx.deadlines.answer());
        }
    }

    pub(crate) fn holds(&self, slice: &SliceId) -> bool {
        self.transfers.slices.contains(slice)
    }

    /// Every slice whose bytes the Executor holds, or will hold once the open orders are done.
    fn all_slices(&self) -> SortedSet<SliceId> {
        let (scope, me) = (&self.scope, self.scope.group.me);
        let named = |task: &Task| match *task {
            Task::Contribution(shard) => Some(scope.contribution(shard, me)),
            Task::Aggregate(shard, attempt) | Task::Noted(shard, attempt) => {
                Some(scope.own_aggregate(shard, attempt))
            }
            Task::Basis(shard, attempt) => Some(scope.basis(shard, me, attempt)),
            Task::Second(shard, attempt) => Some(scope.second(shard, me, attempt)),
            Task::Value(shard) => Some(self.next_value(shard)),
            Task::Combine(..) | Task::Fold(_) => None,
            Task::Stage(_) | Task::Measure(_) | Task::Read(_) => None,
        };
        let under_way = self.reduction.tasks.values().filter_map(named);
        let here = self.transfers.slices.iter().copied();
        here.chain(under_way).collect()
    }

    /// Gives up the work under way, and releases all bytes.
    pub(crate) fn give_back(&mut self, cx: &mut Context) {
        self.stop_waiting(cx);
        self.release(cx, &[]);
    }

    pub(super) fn release(&mut self, cx: &mut Context, keep: &[SliceId]) {
        let mut gone = self.all_slices();
        gone.retain(|slice| !keep.contains(slice));
        // What others still lack of a decided fragment is kept, and goes out in its turn.
        cx.forget_sends(|slice| gone.contains(slice));
        for slice in gone {
            cx.release(slice);
        }
        self.transfers.slices.clear();
    }
}

/// The signed side of the agreement, where the group survives liars.
fn testimony(cx: &Context, group: &Group) -> Option<Box<Testimony>> {
    let sealed = group.sealed.clone()?;
    let ranked = sealed.words.coordinators(&cx.plan.run, cx.round);
    Some(Box::new(Testimony::new(group, sealed, ranked)))
}

/// The first target of each shard: its owner along the program, or that of direct pushes.
fn targets(of: u16, program: Option<&Program>, owners: &[usize]) -> Vec<Target> {
    let direct = |s: u16| owners.get(usize::from(s)).copied().unwrap_or(0);
    let owner = |s: u16| program.map_or_else(|| direct(s), |program| program.owner(s));
    (0..of)
        .map(|s| Target {
            owner: owner(s),
            attempt: Attempt::FIRST,
            exact: None,
        })
        .collect()
}
