//! Carries out a schedule: passes partial sums from member to member, and aggregates on.
//!
//! This is how ballot zero reduces where the plan's schedule is not the butterfly. A partial sum holds the
//! contributions of several members, so a member cannot continue without one that is late. At the deadline, or as
//! soon as it is known that a value will not come, the attempt is given up. The next ballot (`vote`) keeps the
//! aggregates that some member holds and has the others reduced again, directly, by the members that are left.
//!
//! Members forward aggregates that they did not make. So the owner of a shard tells all others its version, and no
//! member keeps or forwards another one.

use super::fragment::FragmentRound;
use super::member::ShardVersion;
use super::message::FragmentMessage;
use super::pipeline::{Came, Pipeline, Work};
use super::state::Task;
use crate::core::context::Context;
use crate::exchange::{Arrived, broke, forbid};
use crate::schedule::Role;
use crate::{
    Attempt, Checked, Combination, Digest, Done, Members, Order, Part, PeerId, SliceId, Source,
    StoreId, Wait, WorkError,
};

impl FragmentRound {
    /// Ballot zero follows a schedule and is still on.
    pub(super) fn pipelining(&self) -> bool {
        self.pipeline.as_ref().is_some_and(|pipeline| pipeline.open)
    }

    /// This peer's part in a schedule, if there is one, is done.
    pub(super) fn pipeline_done(&self) -> bool {
        let open = self.pipeline.as_ref().filter(|pipeline| pipeline.open);
        open.is_none_or(Pipeline::finished)
    }

    /// Takes every step of the schedule that is possible.
    pub(super) fn advance_pipeline(&mut self, cx: &mut Context) {
        if self.pipelining() {
            (0..self.scope.of).for_each(|shard| self.advance_shard(cx, shard));
        }
    }

    fn advance_shard(&mut self, cx: &mut Context, shard: u16) {
        let hopeful = self.hopeful;
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let program = pipeline.program.clone();
        let work = pipeline.works.get_mut(usize::from(shard));
        let (Some(role), Some(work)) = (program.role(shard), work) else {
            return;
        };
        // One order at a time: a stage sums what the stage before it encoded.
        let ready = work.bytes.filter(|_| !work.busy);
        let (Some(bytes), Some(stage)) = (ready, role.stages.get(work.stage)) else {
            return;
        };
        let (at, set) = (work.stage, work.set);
        if !std::mem::replace(&mut work.sent, true)
            && let Some(to) = stage.to
        {
            let meta = match at {
                0 => self.scope.contribution_meta(bytes),
                _ => self.scope.mean_meta(bytes, set),
            };
            let slice = self.scope.value(shard, self.scope.group.me, at);
            self.push(cx, self.scope.group.peer(to), slice, meta);
        }
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let work = &mut pipeline.works[usize::from(shard)];
        if stage.from.is_empty() {
            work.stage += 1;
        } else if work.missing(role, hopeful).is_empty() {
            self.fold(cx, shard, role);
        }
    }

    /// Adds the values of the present stage to this peer's.
    fn fold(&mut self, cx: &mut Context, shard: u16, role: &Role) {
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let work = &mut pipeline.works[usize::from(shard)];
        let at = work.stage;
        work.busy = true;
        let own = (work.set, self.scope.group.me, at);
        let others = role.stages[at].from.iter().filter_map(|source| {
            let set = work.arrived.get(&(source.member, source.value))?;
            Some((*set, source.member, usize::from(source.value)))
        });
        let mut values: Vec<_> = others.chain([own]).collect();
        // Both partners of a swap sum in the same order and so get the same bits.
        values.sort_by_key(|(set, ..)| set.first());
        work.set = values
            .iter()
            .fold(Members::NONE, |all, (set, ..)| all | *set);
        let scope = &self.scope;
        // A mean of nothing has no value to pass on, so a ballot reduces the shard directly.
        if scope.weight(work.set) <= 0.0 {
            pipeline.failed = true;
            return;
        }
        let input = |(set, member, stage)| (scope.value(shard, member, stage), scope.weight(set));
        let piece = scope.piece(shard);
        let how = Combination::Reduce(values.into_iter().map(input).collect());
        self.order(cx, Order::Combine { piece, how }, Task::Fold(shard));
    }

    fn pipeline_failed(&mut self) {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.failed = true;
        }
    }

    /// This peer's contribution is encoded; false where ballot zero follows no schedule any more.
    pub(super) fn pipeline_own(&mut self, shard: u16, bytes: u64) -> bool {
        let set = Members::one(self.scope.group.me);
        let open = self.pipelining();
        if open {
            // It is the first value.
            self.work(shard, |work| (work.set, work.bytes) = (set, Some(bytes)));
        }
        open
    }

    pub(super) fn pipeline_answered(
        &mut self,
        cx: &mut Context,
        task: Task,
        name: SliceId,
        done: &Done,
    ) {
        let open = self.pipelining();
        match (task, done) {
            (Task::Value(_), Done::Encoded { .. }) if !open => {
                self.transfers.slices.insert(name);
            }
            // A ballot has begun: the values of ballot zero are of no use.
            _ if !open => {}
            (Task::Fold(shard), Done::Combined) => {
                let from = Source::Store(StoreId::Shard(shard));
                self.encode(cx, name, from, Task::Value(shard));
            }
            (Task::Fold(shard), Done::Failed(WorkError::BadSlice { slice, reason, .. }))
                if self.scope.group.index(slice.origin).is_some() =>
            {
                let what = format!("a partial sum that is bad: {reason}");
                cx.accuse(slice.origin, what);
                self.pipeline_without(shard, *slice);
            }
            (Task::Value(shard), Done::Encoded { bytes, digest }) => {
                self.transfers.slices.insert(name);
                self.next_stage(cx, shard, *bytes, *digest);
            }
            // This peer's Executor failed: a ballot repairs the values that it does not pass on.
            _ => self.pipeline_failed(),
        }
    }

    /// A value does not decode. A member's own contribution can be left out. A partial sum cannot,
    /// because it holds the contributions of others too.
    fn pipeline_without(&mut self, shard: u16, slice: SliceId) {
        let Some(index) = self.scope.group.index(slice.origin) else {
            return;
        };
        let me = self.scope.group.me;
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let role = pipeline.program.role(shard);
        let work = &mut pipeline.works[usize::from(shard)];
        let stage = role.and_then(|role| role.stages.get(work.stage));
        let alone = stage.is_some_and(|stage| {
            let source = stage.from.iter().find(|source| source.member == index);
            stage.to.is_none() && source.is_some_and(|source| source.alone)
        });
        if alone && index != me {
            work.busy = false;
            work.left_out |= Members::one(index);
            work.arrived.remove(&(index, 0));
            // Before the only stage that sums, this peer's value is its own contribution.
            work.set = Members::one(me);
        } else {
            pipeline.failed = true;
            self.give_up(Members::one(index));
        }
    }

    /// Name of this peer's value once it is encoded: a partial sum, or the aggregate.
    pub(super) fn next_value(&self, shard: u16) -> SliceId {
        let pipeline = self.pipeline.as_ref();
        let work = pipeline.and_then(|r| r.works.get(usize::from(shard)));
        let next = work.map_or(1, |work| work.stage + 1);
        let role = pipeline.and_then(|r| r.program.role(shard));
        match (pipeline, role) {
            (Some(pipeline), Some(role)) if role.ends && next == role.stages.len() => SliceId {
                part: Part::Aggregate,
                ..self
                    .scope
                    .contribution(shard, pipeline.program.owner(shard))
            },
            _ => self.scope.value(shard, self.scope.group.me, next),
        }
    }

    pub(super) fn work(&mut self, shard: u16, change: impl FnOnce(&mut Work)) {
        let pipeline = self.pipeline.as_mut();
        if let Some(work) = pipeline.and_then(|r| r.works.get_mut(usize::from(shard))) {
            change(work);
        }
    }

    /// A value or aggregate of the schedule will never come.
    pub(super) fn broken(&self) -> bool {
        let holds = |shard| self.fitting(shard).is_some();
        let pipeline = self.pipeline.as_ref();
        pipeline.is_some_and(|pipeline| pipeline.is_broken(self.hopeful, holds))
    }

    fn next_stage(&mut self, cx: &mut Context, shard: u16, bytes: u64, digest: Option<Digest>) {
        let me = cx.me();
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let owner = pipeline.program.owner(shard);
        let role = pipeline.program.role(shard);
        let ends = role.map(|r| (r.ends, r.stages.len()));
        let work = &mut pipeline.works[usize::from(shard)];
        (work.busy, work.sent, work.bytes) = (false, false, Some(bytes));
        work.stage += 1;
        let (set, stage) = (work.set, work.stage);
        // Only the last stage makes the aggregate, which all members hear of.
        let Some(digest) = digest.filter(|_| ends == Some((true, stage))) else {
            return;
        };
        let meta = self.scope.mean_meta(bytes, set);
        if owner == self.scope.group.me {
            let version = ShardVersion {
                owner: me,
                attempt: Attempt::FIRST,
                contributors: set,
                digest,
            };
            let reduced = FragmentMessage::Reduced { shard, version };
            // Its word goes ahead of the bytes, which come by way of other members.
            self.scope.send_all(cx, &reduced);
            self.work(shard, |work| work.told = Some(version));
        }
        self.work(shard, |work| {
            work.came = Some(Came {
                from: me,
                meta,
                members: set,
                digest,
            })
        });
        self.check_aggregate(cx, shard);
    }

    /// An aggregate and its owner's word are here: it is passed on if they match.
    fn check_aggregate(&mut self, cx: &mut Context, shard: u16) {
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let (program, open) = (pipeline.program.clone(), pipeline.open);
        let work = &mut pipeline.works[usize::from(shard)];
        // Bytes and word take different ways, and neither counts without the other.
        let (Some(told), Some(came)) = (work.told, work.came) else {
            return;
        };
        work.came = None;
        let slice = self.scope.aggregate(shard, &told);
        let Came { from, meta, .. } = came;
        if (told.digest, told.contributors) != (came.digest, came.members) {
            self.transfers.slices.remove(&slice);
            cx.release(slice);
            // A forwarded aggregate may differ because its owner announced other bytes than it
            // made. It is unknown which of the two lied, so only an owner that sent it itself is
            // accused.
            let maker = self.scope.group.index(from);
            let maker = maker.filter(|_| from == slice.origin && from != cx.me());
            if let Some(index) = maker {
                let what = "an aggregate that differs from its owner's announcement";
                cx.accuse(from, what.to_owned());
                self.give_up(Members::one(index));
            }
            self.pipeline_failed();
            return;
        }
        self.hold(shard, told);
        let serves = program.role(shard).map_or(&[][..], |role| &role.serves);
        for member in serves {
            if open && self.hopeful.has(*member) {
                self.push(cx, self.scope.group.peer(*member), slice, meta);
            }
        }
    }

    /// The owner of a shard announces its version.
    pub(super) fn on_reduced(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        shard: u16,
        version: ShardVersion,
    ) -> Checked {
        let pipeline = self.pipeline.as_ref().filter(|_| shard < self.scope.of);
        let owner = pipeline.map(|pipeline| self.scope.group.peer(pipeline.program.owner(shard)));
        let members = version.contributors;
        let known = !members.is_empty() && members.is_within(self.scope.group.all());
        if owner != Some(from)
            || version.owner != from
            || version.attempt != Attempt::FIRST
            || !known
        {
            return broke("an announcement of another member's reduction");
        }
        let mut other = false;
        self.work(shard, |work| {
            other = *work.told.get_or_insert(version) != version;
        });
        forbid(other, "two versions of one shard under one name")?;
        self.check_aggregate(cx, shard);
        self.advance(cx);
        Ok(())
    }

    /// A partial sum, or an aggregate of ballot zero, arrived: the mean of `members`.
    pub(super) fn pipeline_arrived(
        &mut self,
        cx: &mut Context,
        arrived: Arrived,
        index: usize,
        members: Members,
    ) -> Checked {
        let (from, slice, meta) = (arrived.from, arrived.slice, arrived.meta);
        let Some(pipeline) = &self.pipeline else {
            return broke("a slice of a schedule that the plan does not have");
        };
        let Some(role) = pipeline.program.role(slice.shard) else {
            return broke("a slice of a schedule that has no such shard");
        };
        if slice.part == Part::Aggregate {
            let owner = self.scope.group.peer(pipeline.program.owner(slice.shard));
            // The schedule names one member that hands each shard on to this one.
            if role.server != Some(index) || slice.origin != owner {
                return broke("an aggregate from a member that does not hand it on");
            }
            let Some(digest) = arrived.digest else {
                return broke("an aggregate without a digest");
            };
            // A repeated push brings the same bytes again.
            if self.transfers.slices.insert(slice) {
                self.work(slice.shard, |work| {
                    work.came = Some(Came {
                        from,
                        meta,
                        members,
                        digest,
                    })
                });
                self.check_aggregate(cx, slice.shard);
            }
        } else {
            let sources = role.stages.iter().flat_map(|stage| &stage.from);
            // What a partial sum may hold follows from the schedule: no other set is accepted.
            let mut named = sources.filter(|s| (s.member, s.value) == (index, slice.attempt.0));
            let fits = named.any(|source| members.has(index) && members.is_within(source.set));
            forbid(!fits, "a partial sum that the schedule does not have")?;
            self.transfers.slices.insert(slice);
            self.pipeline_came(cx, index, slice, members);
        }
        self.advance(cx);
        Ok(())
    }

    /// A value of another member is here.
    pub(super) fn pipeline_came(
        &mut self,
        cx: &mut Context,
        index: usize,
        slice: SliceId,
        set: Members,
    ) {
        let source = (index, slice.attempt.0);
        let pipeline = self.pipeline.as_ref();
        let role = pipeline.and_then(|r| r.program.role(slice.shard));
        let mut sources = role.iter().flat_map(|r| &r.stages).flat_map(|s| &s.from);
        if !sources.any(|s| (s.member, s.value) == source) {
            return;
        }
        let mut first = false;
        self.work(slice.shard, |work| {
            first = !work.arrived.contains_key(&source);
            work.arrived.entry(source).or_insert(set);
        });
        // A repetition would count as a longer wait than the first one was.
        if first {
            let waited = cx.now.since(self.since);
            cx.deadlines
                .record(Wait::Contributions, slice.origin, waited);
        }
    }

    /// Members whose value is next in the schedule.
    pub(super) fn missing_in_pipeline(&self) -> Members {
        let Some(pipeline) = &self.pipeline else {
            return Members::NONE;
        };
        let works = (0u16..).zip(&pipeline.works);
        let missing = works.filter_map(|(shard, work)| {
            let role = pipeline.program.role(shard)?;
            Some(work.missing(role, self.hopeful))
        });
        missing.flatten().collect()
    }
}
