//! Carries out a schedule: passes partial sums from member to member, and aggregates on.
//!
//! This is how ballot zero reduces where the plan's schedule is not the butterfly. A partial sum
//! holds the contributions of several members, so a member cannot continue without one that is
//! late. At the deadline, or as soon as it is known that a value will not come, the attempt is
//! given up. The next ballot (`repair`) keeps the aggregates that some member holds and has the
//! others reduced again, directly, by the members that are left.
//!
//! Members forward aggregates that they did not make. So the owner of a shard tells all others its
//! version, and no member keeps or forwards another one.

use super::fragment::FragmentRound;
use super::pipeline::{Pipeline, Work};
use super::state::Task;
use crate::core::context::Context;
use crate::schedule::Role;
use crate::{Done, Members, Order, Part, SliceId, StoreId, WorkError};

impl FragmentRound {
    /// Whether ballot zero follows a schedule and is still on.
    pub(super) fn pipelining(&self) -> bool {
        self.pipeline.as_ref().is_some_and(|pipeline| pipeline.open)
    }

    /// Whether this peer's part in a schedule, if there is one, is done.
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
        if self.scope.weight(
            values
                .iter()
                .fold(Members::NONE, |all, (set, ..)| all | *set),
        ) <= 0.0
        {
            self.pipeline_failed();
            return;
        }
        let input = |(set, member, stage)| {
            (
                self.scope.value(shard, member, stage),
                self.scope.weight(set),
            )
        };
        let inputs = values.into_iter().map(input).collect();
        let order = cx.order(Order::Reduce {
            fragment: self.scope.fragment,
            shard,
            of: self.scope.of,
            inputs,
        });
        self.reduction.tasks.insert(order, Task::Fold(shard));
    }

    pub(super) fn pipeline_failed(&mut self) {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.failed = true;
        }
    }

    /// This peer's contribution is encoded; false where ballot zero follows no schedule any more.
    pub(super) fn pipeline_own(&mut self, shard: u16, bytes: u64) -> bool {
        let me = self.scope.group.me;
        let open = self.pipeline.as_mut().filter(|pipeline| pipeline.open);
        open.is_some_and(|pipeline| {
            pipeline.own(shard, me, bytes);
            true
        })
    }

    /// An order of the schedule was answered.
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
            _ if !open => {}
            (Task::Fold(shard), Done::Combined) => {
                let (store, slice, of) = (StoreId::Shard(shard), name, self.scope.of);
                let order = cx.order(Order::Encode { store, slice, of });
                self.reduction.tasks.insert(order, Task::Value(shard));
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

    /// What this peer's value will be called once it is encoded: a partial sum, or the aggregate.
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

    /// Whether a value or aggregate of the schedule will never come.
    pub(super) fn broken(&self) -> bool {
        let holds = |shard| self.fitting(shard).is_some();
        let pipeline = self.pipeline.as_ref();
        pipeline.is_some_and(|pipeline| pipeline.is_broken(self.hopeful, holds))
    }
}
