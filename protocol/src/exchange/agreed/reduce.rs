//! Contributions in, aggregates out: the two halves of the butterfly.
//!
//! Member s owns shard s. Every member pushes its contribution to shard s to its owner; the owner
//! reduces `sum_i w_i c_i / sum_i w_i` in `PeerId` order over those that came before the deadline,
//! encodes the result and pushes the same bytes to all. With n members and a message of m
//! encoded bytes each peer sends 2 m (n-1)/n in 2 (n-1) pushes.
//!
//! **Source:** Ryabinin et al. 2020 (Moshpit SGD), section 3.2, "butterfly all-reduce" for the form
//! used here; Rabenseifner 2004 for the bandwidth bound.

use super::ballot::ShardVersion;
use super::duty::{Duty, Pass, Progress};
use super::fragment::FragmentRound;
use super::state::Task;
use crate::core::context::Context;
use crate::{Attempt, Digest, Done, Members, Order, OrderId, Part, PeerId, SliceId, WorkError};

impl FragmentRound {
    /// Orders every reduction whose contributions are complete.
    pub(super) fn reduce(&mut self, cx: &mut Context) {
        let ready: Vec<u16> = self
            .reduction
            .duties
            .iter()
            .filter(|(shard, duty)| {
                let waited = duty.expected & self.hopeful;
                duty.progress == Progress::Collecting && waited.is_within(self.here(**shard, duty))
            })
            .map(|(shard, _)| *shard)
            .collect();
        for shard in ready {
            match self.reduction.duties.get(&shard).copied() {
                Some(duty) if duty.pass == Pass::Second => {
                    self.join(cx, shard, self.here(shard, &duty));
                }
                Some(duty) if duty.pass == Pass::Scores => {
                    self.score(cx, self.here(shard, &duty));
                }
                Some(duty) => self.combine(cx, shard, self.here(shard, &duty)),
                None => {}
            }
        }
    }

    /// The members whose contributions of the present pass are here.
    fn here(&self, shard: u16, duty: &Duty) -> Members {
        let here = match duty.pass {
            Pass::First => self.reduction.here.get(&shard).copied(),
            Pass::Second => self.seconds_here(shard, duty),
            Pass::Scores => Some(self.contributed()),
        };
        here.unwrap_or_default()
    }

    fn combine(&mut self, cx: &mut Context, shard: u16, set: Members) {
        let inputs = self.weighed(set, |i| self.scope.contribution(shard, i));
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        let merges = self.scope.group.merges();
        if total <= 0.0 || (cx.plan.too_few(inputs.len()) && !merges) {
            // No member trained, or too few for a robust rule. The shard stays missing.
            self.reduction.duties.remove(&shard);
            return;
        }
        duty.included = set;
        let attempt = duty.attempt;
        duty.progress = Progress::Combining;
        if self.scope.passes.are_two() {
            self.encode_basis(cx, shard, attempt, inputs);
            return;
        }
        let (fragment, of) = (self.scope.fragment, self.scope.cut());
        let (local, shard) = (shard, self.scope.numbered(shard));
        let order = cx.order(match merges {
            true => Order::Average {
                fragment,
                shard,
                of,
                inputs,
            },
            false => Order::Reduce {
                fragment,
                shard,
                of,
                inputs,
            },
        });
        self.reduction
            .tasks
            .insert(order, Task::Combine(local, attempt));
    }

    /// Slices of some members with their weights.
    pub(super) fn weighed(
        &self,
        set: Members,
        name: impl Fn(usize) -> SliceId,
    ) -> Vec<(SliceId, f64)> {
        let weight = |i: usize| Some(self.scope.group.members.get(i)?.weight);
        let all = set.iter();
        all.filter_map(|i| Some((name(i), weight(i)?))).collect()
    }

    /// Members whose contribution to this peer's shard is still missing.
    pub(super) fn missing_contributors(&self) -> Members {
        let open = self
            .reduction
            .duties
            .iter()
            .filter(|(_, d)| d.progress == Progress::Collecting);
        open.fold(Members::NONE, |missing, (shard, duty)| {
            missing | (duty.expected & self.hopeful).without(self.here(*shard, duty))
        })
    }

    /// An order was answered; false when it is not one of this exchange.
    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) -> bool {
        let Some(task) = self.reduction.tasks.remove(&order) else {
            return false;
        };
        if let Task::Fold(shard) | Task::Value(shard) = task {
            let name = self.next_value(shard);
            self.pipeline_answered(cx, task, name, done);
            self.advance(cx);
            return true;
        }
        match task {
            Task::Stage(_) | Task::Measure(_) | Task::Read(_) => {
                self.scoring_answered(cx, task, done);
            }
            _ => self.answered(cx, task, done),
        }
        self.advance(cx);
        true
    }

    /// A ballot gave this shard to another member, or to this peer in another attempt; or the exchange
    /// ended without it, and its slices may be released. The bytes that were encoded all the same are
    /// noted, so that they are released too.
    fn outdated(&mut self, task: Task, shard: u16, attempt: Attempt) {
        match task {
            Task::Aggregate(..) | Task::Noted(..) => {
                let slice = self.own_aggregate(shard, attempt);
                self.transfers.slices.insert(slice);
            }
            Task::Basis(..) => {
                let slice = self.scope.basis(shard, self.scope.group.me, attempt);
                self.transfers.slices.insert(slice);
            }
            _ => {}
        }
    }

    /// This peer's contribution to a shard is encoded.
    fn encoded(&mut self, cx: &mut Context, shard: u16, bytes: u64) {
        self.reduction.encoded.insert(shard, bytes);
        self.transfers
            .slices
            .insert(self.scope.contribution(shard, self.scope.group.me));
        if !self.over() {
            self.contribute(cx, shard);
        }
    }

    /// What follows from an answer that is none of the pipeline's.
    fn answered(&mut self, cx: &mut Context, task: Task, done: &Done) {
        match (task, done) {
            (Task::Contribution(shard), Done::Encoded { bytes, .. }) => {
                self.encoded(cx, shard, *bytes);
            }
            (
                Task::Combine(shard, attempt)
                | Task::Aggregate(shard, attempt)
                | Task::Noted(shard, attempt)
                | Task::Basis(shard, attempt),
                _,
            ) if self.is_outdated(shard, attempt) => self.outdated(task, shard, attempt),
            (Task::Combine(shard, _), Done::Combined) => self.encode_aggregate(cx, shard),
            (
                Task::Combine(shard, _) | Task::Basis(shard, _),
                Done::Failed(WorkError::BadSlice { slice, reason, .. }),
            ) if self.scope.group.index(slice.origin).is_some() => {
                cx.accuse(
                    slice.origin,
                    format!("a contribution that is bad: {reason}"),
                );
                self.without(cx, shard, slice.origin);
            }
            (Task::Basis(shard, _), Done::Encoded { bytes, .. }) => {
                self.send_basis(cx, shard, *bytes);
            }
            (Task::Second(shard, attempt), done) => self.second_answered(cx, shard, attempt, done),
            (
                Task::Aggregate(shard, attempt),
                Done::Failed(WorkError::BadSlice { slice, reason, .. }),
            ) if slice.part == Part::Second => {
                self.without_second(cx, (shard, attempt), slice.origin, reason);
            }
            (Task::Aggregate(shard, attempt), Done::Encoded { .. })
                if self.scope.is_noted(shard) =>
            {
                self.append_note(cx, shard, attempt);
            }
            (
                Task::Aggregate(shard, _) | Task::Noted(shard, _),
                Done::Encoded {
                    bytes,
                    digest: Some(digest),
                },
            ) => self.encoded_aggregate(cx, shard, *bytes, *digest),
            (
                Task::Combine(shard, _)
                | Task::Aggregate(shard, _)
                | Task::Noted(shard, _)
                | Task::Basis(shard, _),
                _,
            ) => {
                // This peer's Executor failed. Its shards stay missing until a ballot repairs them.
                self.reduction.duties.remove(&shard);
            }
            // NaN, or absurd beside the anchor. The round goes on without it.
            (Task::Contribution(_), Done::Failed(error)) => {
                cx.contribution_failed(self.scope.round, error);
            }
            (
                Task::Contribution(_)
                | Task::Fold(_)
                | Task::Value(_)
                | Task::Stage(_)
                | Task::Measure(_)
                | Task::Read(_),
                _,
            ) => {}
        }
    }

    /// Whether another attempt at a shard has begun, or none is needed any more.
    fn is_outdated(&self, shard: u16, attempt: Attempt) -> bool {
        let duty = self.reduction.duties.get(&shard);
        self.over() || duty.is_none_or(|duty| duty.attempt != attempt)
    }

    fn encoded_aggregate(&mut self, cx: &mut Context, shard: u16, bytes: u64, digest: Digest) {
        if self.scope.gathered {
            self.reduction.encoded.insert(shard, bytes);
        }
        self.publish(cx, shard, bytes, digest);
    }

    /// Puts the column's note behind the bytes of an aggregate.
    fn append_note(&mut self, cx: &mut Context, shard: u16, attempt: Attempt) {
        let duty = self.reduction.duties.get(&shard);
        let rows = duty.map_or(Members::NONE, |duty| duty.included);
        let note = self.scope.note_with(rows);
        let slice = self.own_aggregate(shard, attempt);
        let of = self.scope.cut();
        let order = cx.order(Order::Append { slice, of, note });
        self.reduction
            .tasks
            .insert(order, Task::Noted(shard, attempt));
    }

    /// The name of this peer's aggregate of a shard.
    pub(super) fn own_aggregate(&self, shard: u16, attempt: Attempt) -> SliceId {
        SliceId {
            part: self.scope.named(shard),
            attempt,
            ..self.scope.contribution(shard, self.scope.group.me)
        }
    }

    /// Brings this peer's encoded contribution to the member that reduces the shard in this ballot.
    pub(super) fn contribute(&mut self, cx: &mut Context, shard: u16) {
        let Some(owner) = self.targets.get(usize::from(shard)).map(|t| t.owner) else {
            return;
        };
        let Some(bytes) = self.reduction.encoded.get(&shard).copied() else {
            return;
        };
        if self.pipeline_own(shard, bytes) {
            return;
        }
        if owner == self.scope.group.me {
            *self.reduction.here.entry(shard).or_default() |= Members::one(owner);
            return;
        }
        let meta = self.scope.contribution_meta(bytes);
        let slice = self.scope.contribution(shard, self.scope.group.me);
        self.tell_tally(cx, shard, owner);
        self.push(cx, self.scope.group.peer(owner), slice, meta);
    }

    fn encode_aggregate(&mut self, cx: &mut Context, shard: u16) {
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        duty.progress = Progress::Encoding;
        let attempt = duty.attempt;
        let slice = self.own_aggregate(shard, attempt);
        let order = cx.order(Order::Encode {
            store: self.scope.reduction(shard),
            slice,
            of: self.scope.cut(),
        });
        self.reduction
            .tasks
            .insert(order, Task::Aggregate(shard, attempt));
    }

    /// A contribution does not decode: its sender is left out.
    fn without(&mut self, cx: &mut Context, shard: u16, origin: PeerId) {
        let Some(index) = self.scope.group.index(origin) else {
            return;
        };
        if let Some(here) = self.reduction.here.get_mut(&shard) {
            *here = here.without(Members::one(index));
        }
        if let Some(duty) = self.reduction.duties.get_mut(&shard) {
            duty.expected = duty.expected.without(Members::one(index));
            duty.progress = Progress::Collecting;
        }
        self.reduce(cx);
    }

    /// This peer's shard is reduced: all others get the same bytes that this peer will apply.
    fn publish(&mut self, cx: &mut Context, shard: u16, bytes: u64, digest: Digest) {
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        duty.progress = Progress::Done;
        let version = ShardVersion {
            owner: self.scope.group.peer(self.scope.group.me),
            attempt: duty.attempt,
            contributors: duty.included,
            digest,
        };
        let meta = self.scope.mean_meta(bytes, version.contributors);
        let slice = self.scope.aggregate(shard, &version);
        let to: Vec<PeerId> = self
            .scope
            .group
            .others()
            .filter(|(i, _)| self.is_told(cx, *i))
            .map(|(_, peer)| peer)
            .collect();
        to.into_iter()
            .for_each(|peer| self.push(cx, peer, slice, meta));
        self.hold(shard, version);
    }

    /// Notes that the bytes of a version are here.
    pub(super) fn hold(&mut self, shard: u16, version: ShardVersion) {
        self.transfers
            .slices
            .insert(self.scope.aggregate(shard, &version));
        let versions = self.held.entry(shard).or_default();
        // The bytes of an earlier version with the same name were overwritten.
        versions.retain(|v| (v.owner, v.attempt) != (version.owner, version.attempt));
        versions.push(version);
    }
}
