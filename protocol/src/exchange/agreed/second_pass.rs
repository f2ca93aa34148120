//! Exchanges of two passes: the owner of a shard makes a *basis* of the members' first contributions and
//! sends it to them; each encodes a second contribution for this basis; the owner makes the aggregate of
//! basis and second contributions.
//!
//! ```text
//! b = basis(first_1, ..., first_n),   second_i = encode(x_i; b),   aggregate = join(b, sum_i w_i second_i / sum_i w_i)
//! ```
//!
//! Only the aggregate is voted on: it contains all that members apply, so a basis needs no agreement. An
//! owner that dies between the passes leaves a shard without an aggregate, and the next ballot has the
//! shard reduced again from the first pass on, by a successor that makes a basis of its own. A second
//! contribution counts for one basis only, so it is named by the attempt. Contributors of the aggregate
//! are those of the second pass.
//!
//! Cost per round with n members: twice the pushes of an exchange of one pass, 4 (n - 1) for each member
//! in the butterfly, and two more latencies.
//!
//! **Source:** Vogels et al. 2019, "PowerSGD", algorithm 1, where both passes are all-reduces; Ivkin et
//! al. 2019, "Communication-efficient distributed SGD with sketching", algorithm 2, where the server asks
//! for exact values in the second.

use super::ballot::ShardVersion;
use super::duty::{Duty, Pass, Progress};
use super::fragment::FragmentRound;
use super::state::{FragmentStage, Task};
use crate::core::context::Context;
use crate::{Attempt, Done, Members, Order, PeerId, Settlement, SliceId, Wait, WorkError};

impl FragmentRound {
    /// The members whose second contributions for this peer's basis are here.
    pub(super) fn seconds_here(&self, shard: u16, duty: &Duty) -> Option<Members> {
        let seconds = self.reduction.seconds.get(&(shard, duty.attempt));
        // One that did not contribute before has nothing to add to.
        seconds.map(|seconds| *seconds & duty.expected)
    }

    /// All first contributions to a shard are here: makes the basis of them.
    pub(super) fn encode_basis(
        &mut self,
        cx: &mut Context,
        shard: u16,
        attempt: Attempt,
        inputs: Vec<(SliceId, f64)>,
    ) {
        let order = cx.order(Order::EncodeBasis {
            slice: self.scope.basis(shard, self.scope.group.me, attempt),
            of: self.scope.cut(),
            inputs,
        });
        self.reduction
            .tasks
            .insert(order, Task::Basis(shard, attempt));
    }

    /// The basis is made: the members whose first contributions are in it get it, and their second ones
    /// are awaited.
    pub(super) fn send_basis(&mut self, cx: &mut Context, shard: u16, bytes: u64) {
        let me = self.scope.group.me;
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        (duty.pass, duty.progress) = (Pass::Second, Progress::Collecting);
        duty.expected = duty.included;
        let (attempt, included) = (duty.attempt, duty.included);
        let slice = self.scope.basis(shard, me, attempt);
        self.transfers.slices.insert(slice);
        let meta = self.scope.mean_meta(bytes, included);
        let others = self.scope.group.others();
        let to: Vec<PeerId> = others
            .filter(|(i, _)| included.has(*i) && self.hopeful.has(*i))
            .map(|(_, peer)| peer)
            .collect();
        self.wait_for_seconds(cx, &to);
        for peer in to {
            self.push(cx, peer, slice, meta);
        }
        if included.has(me) {
            self.encode_second(cx, shard, attempt, me);
        }
    }

    /// The second wait for members is as long as the first one may be.
    fn wait_for_seconds(&mut self, cx: &mut Context, members: &[PeerId]) {
        let allowed = cx
            .deadlines
            .allow(Wait::Contributions, members.iter().copied());
        match self.stage {
            FragmentStage::Collecting => {
                cx.waited_in(self.scope.fragment, Wait::Contributions, false);
                self.deadline = cx.wait_in(self.scope.fragment, Wait::Contributions, allowed);
            }
            FragmentStage::Repairing => self.wait_for_repair(cx, allowed),
            FragmentStage::Gathering => {}
        }
    }

    /// The owner of a shard sends a basis.
    pub(super) fn basis_arrived(
        &mut self,
        cx: &mut Context,
        owner: usize,
        slice: SliceId,
        members: Members,
    ) {
        self.transfers.slices.insert(slice);
        let shard = self.scope.part_of(&slice);
        // A basis without this peer's contribution waits for nothing of it.
        if members.has(self.scope.group.me) {
            let owner = self.scope.group.peer(owner);
            self.reduction.bases.insert((shard, slice.attempt), owner);
            self.answer_basis(cx, shard);
        }
    }

    /// Encodes this peer's second contribution to a shard, if the basis that the present ballot is about is
    /// here. One that comes before its ballot's plan waits for it.
    pub(super) fn answer_basis(&mut self, cx: &mut Context, shard: u16) {
        let Some(target) = self.targets.get(usize::from(shard)).copied() else {
            return;
        };
        let place = (shard, target.attempt);
        let owner = self.reduction.bases.get(&place).copied();
        let awaited = target.exact.is_none() && owner == Some(self.scope.group.peer(target.owner));
        if awaited && self.reduction.encoded.contains_key(&shard) && !self.over() {
            self.reduction.bases.remove(&place);
            self.encode_second(cx, shard, target.attempt, target.owner);
        }
    }

    fn encode_second(&mut self, cx: &mut Context, shard: u16, attempt: Attempt, owner: usize) {
        let order = cx.order(Order::EncodeSecond {
            slice: self.scope.second(shard, self.scope.group.me, attempt),
            of: self.scope.cut(),
            basis: self.scope.basis(shard, owner, attempt),
        });
        self.reduction
            .tasks
            .insert(order, Task::Second(shard, attempt));
    }

    /// This peer's second contribution is encoded: its owner gets it. A basis that nothing can be encoded
    /// for is its owner's fault, and nothing more is expected of this owner.
    pub(super) fn second_answered(
        &mut self,
        cx: &mut Context,
        shard: u16,
        attempt: Attempt,
        done: &Done,
    ) {
        let me = self.scope.group.me;
        match done {
            Done::Encoded { bytes, .. } => {
                let slice = self.scope.second(shard, me, attempt);
                self.transfers.slices.insert(slice);
                let target = self.targets.get(usize::from(shard));
                let owner = target.filter(|target| target.attempt == attempt);
                match owner.map(|target| target.owner) {
                    _ if self.over() => {}
                    Some(owner) if owner == me => self.second_arrived(me, slice),
                    Some(owner) => {
                        let meta = self.scope.contribution_meta(*bytes);
                        self.push(cx, self.scope.group.peer(owner), slice, meta);
                    }
                    None => {}
                }
            }
            Done::Failed(WorkError::BadSlice { slice, reason, .. }) => {
                if let Some(owner) = self.scope.group.index(slice.origin) {
                    cx.accuse(slice.origin, format!("a basis that is bad: {reason}"));
                    self.give_up(Members::one(owner));
                }
            }
            _ => {}
        }
    }

    /// A member's second contribution is here.
    pub(super) fn second_arrived(&mut self, member: usize, slice: SliceId) {
        self.transfers.slices.insert(slice);
        let shard = self.scope.part_of(&slice);
        let duty = self.reduction.duties.get(&shard);
        if duty.is_some_and(|duty| duty.pass == Pass::Second && duty.attempt == slice.attempt) {
            let seconds = self.reduction.seconds.entry((shard, slice.attempt));
            *seconds.or_default() |= Members::one(member);
        }
    }

    /// All second contributions to a shard are here: makes the aggregate of them.
    pub(super) fn join(&mut self, cx: &mut Context, shard: u16, set: Members) {
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        let attempt = duty.attempt;
        (duty.included, duty.progress) = (set, Progress::Encoding);
        let inputs = self.weighed(set, |i| self.scope.second(shard, i, attempt));
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        if total <= 0.0 || cx.plan.too_few(inputs.len()) {
            // The shard stays missing: a ballot has it reduced again.
            self.reduction.duties.remove(&shard);
            return;
        }
        let order = cx.order(Order::EncodeJoined {
            slice: self.own_aggregate(shard, attempt),
            of: self.scope.cut(),
            basis: self.scope.basis(shard, self.scope.group.me, attempt),
            inputs,
        });
        self.reduction
            .tasks
            .insert(order, Task::Aggregate(shard, attempt));
    }

    /// A second contribution does not fit the basis: its sender is left out. In ballots above zero two
    /// coordinators may have named two owners in one attempt, and it may be for the other one.
    pub(super) fn without_second(
        &mut self,
        cx: &mut Context,
        (shard, attempt): (u16, Attempt),
        origin: PeerId,
        reason: &str,
    ) {
        if attempt == Attempt::FIRST {
            cx.accuse(
                origin,
                format!("a second contribution that is bad: {reason}"),
            );
        }
        let index = self.scope.group.index(origin);
        if let Some(duty) = self.reduction.duties.get_mut(&shard) {
            duty.progress = Progress::Collecting;
            if let Some(index) = index {
                duty.expected = duty.expected.without(Members::one(index));
            }
        }
    }

    /// Tells the codec if this peer's second contribution to a shard is not in what was decided.
    pub(super) fn settle_second(&self, cx: &mut Context, shard: u16, version: &ShardVersion) {
        let me = self.scope.group.me;
        let slice = self.scope.second(shard, me, version.attempt);
        if !version.contributors.has(me) && self.transfers.slices.contains(&slice) {
            let outcome = Settlement::Lost;
            cx.order(Order::Settle { slice, outcome });
        }
    }
}
