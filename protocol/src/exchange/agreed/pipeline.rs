//! A schedule carried out: partial sums from member to member, aggregates handed on.
//!
//! This is how ballot zero reduces where the plan's schedule is not the butterfly. What comes from
//! third hands cannot be left out when it is late, so no member continues without it: at one
//! deadline, or as soon as it is known that something will not come, the attempt is given up, and
//! the next ballot (`repair`) keeps what somebody holds and reduces the rest again, directly, with
//! those who are left.
//!
//! An aggregate passes through hands that did not make it: its owner tells all others its version,
//! and no member keeps or forwards another version.

use super::fragment::FragmentRound;
use super::schedule::{Program, Role};
use super::state::Task;
use crate::core::context::Context;
use crate::wire::ShardVersion;
use crate::{Digest, Done, Members, Order, Part, PeerId, SliceId, SliceMeta, StoreId, WorkError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One fragment's way through a schedule.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) program: Arc<Program>,
    /// Whether ballot zero is still on.
    pub(super) open: bool,
    /// Whether something is known never to come.
    pub(super) failed: bool,
    pub(super) works: Vec<Work>,
}

/// One shard of it at this member.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) stage: usize,
    /// Whose contributions are in this peer's value.
    pub(super) set: Members,
    /// Encoded bytes of this peer's value, once it has been encoded.
    pub(super) bytes: Option<u64>,
    pub(super) sent: bool,
    /// Whether the next value is being made.
    pub(super) busy: bool,
    /// Values of others, by member and stage: whose contributions are in them.
    pub(super) arrived: BTreeMap<(usize, u8), Members>,
    pub(super) left_out: Members,
    /// The version of the aggregate, as its owner made it.
    pub(super) told: Option<ShardVersion>,
    /// An aggregate that is here, and who brought it, until the owner has told.
    pub(super) came: Option<Came>,
}

/// An aggregate that another member passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) from: PeerId,
    pub(super) meta: SliceMeta,
    /// Whose contributions are in it, as its tag says.
    pub(super) members: Members,
    pub(super) digest: Digest,
}

impl Pipeline {
    /// Nothing is done yet. If a member is known to be lost, the schedule need not begin.
    pub(super) fn new(program: Arc<Program>, lost: bool) -> Self {
        let mut works = Vec::new();
        works.resize_with(program.shards(), Work::default);
        Self {
            program,
            open: true,
            failed: lost,
            works,
        }
    }

    /// A ballot above zero has begun.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// Whether this peer's part is done.
    fn finished(&self) -> bool {
        (0u16..).zip(&self.works).all(|(shard, work)| {
            let role = self.program.role(shard);
            let ended = role.is_none_or(|role| work.stage >= role.stages.len());
            ended && !work.busy && work.bytes.is_some()
        })
    }
}

impl Work {
    /// The values of the present stage that are waited for.
    fn missing(&self, role: &Role, hopeful: Members) -> Vec<usize> {
        let Some(stage) = role.stages.get(self.stage) else {
            return Vec::new();
        };
        // Partners of a swap must add up the same: neither of them may leave anybody out.
        let one_way = stage.to.is_none();
        let lacking = stage.from.iter().filter(|source| {
            let gone = self.left_out.has(source.member) || !hopeful.has(source.member);
            let here = self.arrived.contains_key(&(source.member, source.value));
            !(here || one_way && source.alone && gone)
        });
        lacking.map(|source| source.member).collect()
    }
}

impl FragmentRound {
    /// Whether ballot zero follows a schedule and is still on.
    pub(super) fn pipelining(&self) -> bool {
        self.pipeline.as_ref().is_some_and(|pipeline| pipeline.open)
    }

    /// Whether this peer's part in a schedule, if there is one, is done.
    pub(super) fn pipeline_done(&self) -> bool {
        let pipeline = self.pipeline.as_ref().filter(|pipeline| pipeline.open);
        pipeline.is_none_or(Pipeline::finished)
    }

    /// Does what can be done of the schedule.
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
                0 => self.contribution_meta(bytes),
                _ => self.mean_meta(bytes, set),
            };
            let slice = self.value(shard, self.scope.group.me, at);
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
        // Partners of a swap add up in the same order.
        values.sort_by_key(|(set, ..)| set.first());
        work.set = values
            .iter()
            .fold(Members::NONE, |all, (set, ..)| all | *set);
        if self.weight(
            values
                .iter()
                .fold(Members::NONE, |all, (set, ..)| all | *set),
        ) <= 0.0
        {
            self.pipeline_failed();
            return;
        }
        let input = |(set, member, stage)| (self.value(shard, member, stage), self.weight(set));
        let inputs = values.into_iter().map(input).collect();
        let order = cx.order(Order::Reduce {
            fragment: self.scope.fragment,
            shard,
            of: self.scope.of,
            inputs,
        });
        self.reduction.tasks.insert(order, Task::Fold(shard));
    }

    /// Samples behind these members' contributions.
    fn weight(&self, set: Members) -> f64 {
        let known = set.iter().filter_map(|i| self.scope.group.members.get(i));
        known.map(|member| member.weight).sum()
    }

    pub(super) fn pipeline_failed(&mut self) {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.failed = true;
        }
    }

    /// This peer's contribution is encoded; false where ballot zero follows no schedule any more.
    pub(super) fn pipeline_own(&mut self, shard: u16, bytes: u64) -> bool {
        let me = Members::one(self.scope.group.me);
        let Some(pipeline) = self.pipeline.as_mut().filter(|pipeline| pipeline.open) else {
            return false;
        };
        if let Some(work) = pipeline.works.get_mut(usize::from(shard)) {
            (work.set, work.bytes) = (me, Some(bytes));
        }
        true
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
            // This peer's Executor failed: others repair what this peer does not pass on.
            _ => self.pipeline_failed(),
        }
    }

    /// What somebody sent does not decode. Its own contribution alone can be left out; a partial
    /// sum holds those of others too.
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
            // Values of one shard are made in one stage, before which it is this peer's
            // contribution.
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
                ..self.contribution(shard, pipeline.program.owner(shard))
            },
            _ => self.value(shard, self.scope.group.me, next),
        }
    }

    pub(super) fn work(&mut self, shard: u16, change: impl FnOnce(&mut Work)) {
        let pipeline = self.pipeline.as_mut();
        if let Some(work) = pipeline.and_then(|r| r.works.get_mut(usize::from(shard))) {
            change(work);
        }
    }

    /// Whether something of the schedule will never come: waiting would be in vain.
    pub(super) fn broken(&self) -> bool {
        let Some(pipeline) = self.pipeline.as_ref().filter(|pipeline| pipeline.open) else {
            return false;
        };
        let lost = |member: usize| !self.hopeful.has(member);
        let stuck = |(shard, work): (u16, &Work)| {
            let Some(role) = pipeline.program.role(shard) else {
                return false;
            };
            let missing = work.missing(role, self.hopeful);
            let unserved = role.server.is_some_and(lost) && work.came.is_none();
            let untold = work.told.is_none() && lost(pipeline.program.owner(shard));
            missing.into_iter().any(lost) || (self.fitting(shard).is_none() && (unserved || untold))
        };
        pipeline.failed || (0u16..).zip(&pipeline.works).any(stuck)
    }
}
