//! Contributions in, aggregates out: reduced by owners, or gathered.
//!
//! # The butterfly
//!
//! Member s owns shard s. Every member pushes its contribution to shard s to its owner; the owner reduces
//! `sum_i w_i c_i / sum_i w_i` in `PeerId` order over those that came before the deadline, encodes the result and
//! pushes the same bytes to all. With n members and a message of m encoded bytes each peer sends 2 m (n-1)/n in
//! 2 (n-1) pushes.
//!
//! **Source:** Ryabinin et al. 2020 (Moshpit SGD), section 3.2, "butterfly all-reduce" for the form used here;
//! Rabenseifner 2004 for the bandwidth bound.
//!
//! # Two passes
//!
//! The owner of a shard makes a *basis* of the members' first contributions and sends it to them; each encodes a
//! second contribution for this basis; the owner makes the aggregate of basis and second contributions.
//!
//! ```text
//! b = basis(first_1, ..., first_n),   second_i = encode(x_i; b),   aggregate = join(b, sum_i w_i second_i / sum_i w_i)
//! ```
//!
//! Only the aggregate is voted on: it contains all that members apply, so a basis needs no agreement. An owner that
//! dies between the passes leaves a shard without an aggregate, and the next ballot has the shard reduced again from
//! the first pass on, by a successor that makes a basis of its own. A second contribution counts for one basis only,
//! so it is named by the attempt. Contributors of the aggregate are those of the second pass.
//!
//! Cost per round with n members: twice the pushes of an exchange of one pass, 4 (n - 1) for each member in the
//! butterfly, and two more latencies.
//!
//! **Source:** Vogels et al. 2019, "PowerSGD", algorithm 1, where both passes are all-reduces; Ivkin et al. 2019,
//! "Communication-efficient distributed SGD with sketching", algorithm 2, where the server asks for exact values in
//! the second.
//!
//! # Gathered
//!
//! Every member pushes its contribution, as it was encoded, to all others, and each member combines all of them
//! itself, in `PeerId` order. This suits codecs whose sums cannot be encoded again without loss.
//!
//! ```text
//! a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on
//! ```
//!
//! Members vote on contributions instead of shards: part i is member i's contribution, by the hash of its bytes. If a
//! dead member served some members, the others fetch its contribution from them. If no member holds it, a ballot
//! leaves it out, as a version without contributors. A contribution that does not decode fails in the same way at
//! every member, so all leave it out. Groups, votes, ballots and history are those of the all-reduce.
//!
//! Cost per round with n members, f fragments and a contribution of m encoded bytes: f (n - 1) pushes of m / f bytes
//! each by every member, n f (n - 1) in all; control messages as in all-reduce. Each member decodes n contributions.
//! Latency: group, contributions, votes. Cheaper than the butterfly's 2 m (n - 1) / n where the reduction is encoded
//! worse than n / 2 times as long as a contribution.
//!
//! **Source:** the all-gather of sparse gradients in Lin et al. 2018, "Deep Gradient Compression", section 3, and Xu
//! et al. 2021, "GRACE", section IV; agreement: Lamport 2001, "Paxos Made Simple".

use super::decision::inputs_of;
use super::fragment::FragmentRound;
use super::member::ShardVersion;
use super::message::FragmentMessage;
use super::scope::Reduce;
use super::state::{Duty, FragmentStage, Pass, Progress, Task};
use crate::core::context::Context;
use crate::exchange::settlement;
use crate::{
    Attempt, Digest, Done, Ending, Event, Members, Order, OrderId, Part, PeerId, Settlement,
    SliceId, Source, StoreId, Wait, WorkError,
};

impl FragmentRound {
    /// Orders every reduction whose contributions are complete.
    pub(super) fn reduce(&mut self, cx: &mut Context) {
        // Those that are given up are not waited for, but what came from them counts.
        let complete = |(shard, duty): &(&u16, &Duty)| {
            let waited = duty.expected & self.hopeful;
            duty.progress == Progress::Collecting && waited.is_within(self.here(**shard, duty))
        };
        let ready = self.reduction.duties.iter().filter(complete);
        let ready: Vec<u16> = ready.map(|(shard, _)| *shard).collect();
        for shard in ready {
            let Some(duty) = self.reduction.duties.get(&shard).copied() else {
                continue;
            };
            let here = self.here(shard, &duty);
            match duty.pass {
                Pass::First => self.combine(cx, shard, here),
                Pass::Second => self.join(cx, shard, here),
                Pass::Scores => self.scorer().score(cx, here),
            }
        }
    }

    /// The members whose contributions of the present pass are here.
    fn here(&self, shard: u16, duty: &Duty) -> Members {
        let here = match duty.pass {
            Pass::First => self.reduction.here.get(&shard).copied(),
            Pass::Second => self.seconds_here(shard, duty),
            Pass::Scores => Some(self.holdings.contributed(self.scope.group.len())),
        };
        here.unwrap_or_default()
    }

    fn combine(&mut self, cx: &mut Context, shard: u16, set: Members) {
        // No mask is for a member that said it brings nothing.
        let set = match self.scope.is_masked() {
            true => set & self.scope.group.bringing(),
            false => set,
        };
        let inputs = self.weighed(set, |i| self.scope.contribution(shard, i));
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        if total <= 0.0 || self.scope.too_few(&cx.plan, inputs.len()) {
            // No member trained, or too few for a robust rule. The shard stays missing.
            self.reduction.duties.remove(&shard);
            return;
        }
        // It goes into the version, so all members agree on whose contributions these are.
        duty.included = set;
        let attempt = duty.attempt;
        duty.progress = Progress::Combining;
        if matches!(self.scope.reduce, Reduce::TwoPasses) {
            let slice = self.scope.basis(shard, self.scope.group.me, attempt);
            self.encode(
                cx,
                slice,
                Source::Basis(inputs),
                Task::Basis(shard, attempt),
            );
            return;
        }
        let (piece, how) = (self.scope.piece(shard), self.scope.combination(inputs));
        self.order(
            cx,
            Order::Combine { piece, how },
            Task::Combine(shard, attempt),
        );
    }

    fn weighed(&self, set: Members, name: impl Fn(usize) -> SliceId) -> Vec<(SliceId, f64)> {
        let weight = |i: usize| Some(self.scope.group.members.get(i)?.said.weight);
        let all = set.iter();
        all.filter_map(|i| Some((name(i), weight(i)?))).collect()
    }

    /// Members whose contribution to this peer's shard is still missing.
    pub(super) fn missing_contributors(&self) -> Members {
        let duties = self.reduction.duties.iter();
        let open = duties.filter(|(_, d)| d.progress == Progress::Collecting);
        open.fold(Members::NONE, |missing, (shard, duty)| {
            missing | (duty.expected & self.hopeful).without(self.here(*shard, duty))
        })
    }

    /// An order was answered; false when it is not one of this exchange.
    pub(crate) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) -> bool {
        let Some(task) = self.reduction.tasks.remove(&order) else {
            return false;
        };
        match task {
            Task::Fold(shard) | Task::Value(shard) => {
                self.pipeline_answered(cx, task, self.next_value(shard), done);
            }
            Task::Stage(_) | Task::Measure(_) => {
                if self.over() || self.agreement.decided.is_some() {
                    // Scores that come after the decision would change nothing.
                    self.scorer().give_up();
                } else {
                    self.scorer().evaluated(cx, task, done);
                }
            }
            Task::Read(part) => {
                if !self.scorer().was_read(cx, part, done) {
                    // The others merge by scores that this peer lacks: it takes their result over.
                    self.missed = self.missed.or(self.scope.group.other_peers().next());
                }
            }
            _ => self.answered(cx, task, done),
        }
        self.advance(cx);
        true
    }

    /// A ballot gave this shard to another member or attempt, or the exchange ended. Bytes that
    /// are encoded all the same are noted, to be released.
    fn outdated(&mut self, task: Task, shard: u16, attempt: Attempt) {
        self.transfers.slices.extend(match task {
            Task::Aggregate(..) | Task::Noted(..) => Some(self.scope.own_aggregate(shard, attempt)),
            Task::Basis(..) => Some(self.scope.basis(shard, self.scope.group.me, attempt)),
            _ => None,
        });
    }

    fn encoded(&mut self, cx: &mut Context, shard: u16, bytes: u64) {
        self.reduction.encoded.insert(shard, bytes);
        let slice = self.scope.contribution(shard, self.scope.group.me);
        self.transfers.slices.insert(slice);
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
                let what = format!("a contribution that is bad: {reason}");
                cx.accuse(slice.origin, what);
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
                if let Some(note) = self.note_behind(shard) =>
            {
                // The column's note goes behind the bytes.
                let slice = self.scope.own_aggregate(shard, attempt);
                self.encode(cx, slice, Source::Noted(note), Task::Noted(shard, attempt));
            }
            (
                Task::Aggregate(shard, _) | Task::Noted(shard, _),
                Done::Encoded {
                    bytes,
                    digest: Some(digest),
                },
            ) => {
                if self.scope.is_gathered() {
                    self.reduction.encoded.insert(shard, *bytes);
                }
                self.publish(cx, shard, *bytes, *digest);
            }
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
            (Task::Contribution(_), Done::Failed(error)) => self.brought_nothing(cx, error),
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

    /// This peer's contribution is not finite, or absurd: the others go on without it if they can.
    fn brought_nothing(&mut self, cx: &mut Context, error: &WorkError) {
        cx.contribution_failed(self.scope.round, error);
        if self.scope.is_masked() && !self.over() {
            // The others would wait for a sum that can never be whole.
            self.scope.send_all(cx, &FragmentMessage::Nothing);
            self.void(cx);
        }
    }

    /// Another attempt at a shard has begun, or none is needed any more.
    fn is_outdated(&self, shard: u16, attempt: Attempt) -> bool {
        let duty = self.reduction.duties.get(&shard);
        self.over() || duty.is_none_or(|duty| duty.attempt != attempt)
    }

    /// The note that goes behind the bytes of an aggregate, in a column that decides one.
    fn note_behind(&self, shard: u16) -> Option<Vec<u8>> {
        let duty = self.reduction.duties.get(&shard);
        let rows = duty.map_or(Members::NONE, |duty| duty.included);
        self.scope.note_behind(shard, rows)
    }

    /// Brings this peer's encoded contribution to the member that reduces the shard in this ballot.
    pub(super) fn contribute(&mut self, cx: &mut Context, shard: u16) {
        let Some(owner) = self.targets.get(usize::from(shard)).map(|t| t.owner) else {
            return;
        };
        let Some(bytes) = self.reduction.encoded.get(&shard).copied() else {
            return;
        };
        // Along a schedule it is this peer's first value, and goes where the schedule says.
        if self.pipeline_own(shard, bytes) {
            return;
        }
        if owner == self.scope.group.me {
            *self.reduction.here.entry(shard).or_default() |= Members::one(owner);
            return;
        }
        let meta = self.scope.contribution_meta(bytes);
        let slice = self.scope.contribution(shard, self.scope.group.me);
        // Before the slice: the owner makes its note as soon as the mean is complete.
        self.scope.tell_tally(cx, shard, owner);
        self.push(cx, self.scope.group.peer(owner), slice, meta);
    }

    fn encode_aggregate(&mut self, cx: &mut Context, shard: u16) {
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        duty.progress = Progress::Encoding;
        let attempt = duty.attempt;
        let slice = self.scope.own_aggregate(shard, attempt);
        let from = Source::Store(self.scope.reduction(shard));
        self.encode(cx, slice, from, Task::Aggregate(shard, attempt));
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
            owner: cx.me(),
            attempt: duty.attempt,
            contributors: duty.included,
            digest,
        };
        let meta = self.scope.mean_meta(bytes, version.contributors);
        let slice = self.scope.aggregate(shard, &version);
        let others = self.scope.group.others();
        let told = others.filter(|(i, _)| self.is_told(cx, *i));
        let to: Vec<PeerId> = told.map(|(_, peer)| peer).collect();
        to.into_iter()
            .for_each(|peer| self.push(cx, peer, slice, meta));
        // It counts as here before any push has ended: a vote says that this peer can serve it.
        self.hold(shard, version);
    }

    /// The members whose second contributions for this peer's basis are here.
    fn seconds_here(&self, shard: u16, duty: &Duty) -> Option<Members> {
        let seconds = self.reduction.seconds.get(&(shard, duty.attempt));
        // One that did not contribute before has nothing to add to.
        seconds.map(|seconds| *seconds & duty.expected)
    }

    /// The basis is made: it goes to those whose first contributions are in it.
    fn send_basis(&mut self, cx: &mut Context, shard: u16, bytes: u64) {
        let me = self.scope.group.me;
        let Some(duty) = self.reduction.duties.get_mut(&shard) else {
            return;
        };
        (duty.pass, duty.progress) = (Pass::Second, Progress::Collecting);
        // Second contributions are for this basis, so only those that are in it may send one.
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

    fn wait_for_seconds(&mut self, cx: &mut Context, members: &[PeerId]) {
        let (fragment, wait) = (self.scope.fragment, Wait::Contributions);
        let allowed = cx.deadlines.allow(wait, members.iter().copied());
        match self.stage {
            FragmentStage::Collecting => {
                cx.waited_in(fragment, wait);
                self.deadline = cx.wait_in(fragment, wait, allowed);
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
            // One answer to a basis: its arrival leads here, and so does the plan of its ballot.
            self.reduction.bases.remove(&place);
            self.encode_second(cx, shard, target.attempt, target.owner);
        }
    }

    fn encode_second(&mut self, cx: &mut Context, shard: u16, attempt: Attempt, owner: usize) {
        let slice = self.scope.second(shard, self.scope.group.me, attempt);
        let basis = self.scope.basis(shard, owner, attempt);
        self.encode(
            cx,
            slice,
            Source::Second { basis },
            Task::Second(shard, attempt),
        );
    }

    /// This peer's second contribution is encoded: its owner gets it. A basis that nothing can be encoded
    /// for is its owner's fault, and nothing more is expected of this owner.
    fn second_answered(&mut self, cx: &mut Context, shard: u16, attempt: Attempt, done: &Done) {
        let me = self.scope.group.me;
        match done {
            Done::Encoded { bytes, .. } => {
                let slice = self.scope.second(shard, me, attempt);
                self.transfers.slices.insert(slice);
                let target = self.targets.get(usize::from(shard));
                let target = target.filter(|target| target.attempt == attempt && !self.over());
                let Some(owner) = target.map(|target| target.owner) else {
                    return;
                };
                if owner == me {
                    self.second_arrived(me, slice);
                } else {
                    let meta = self.scope.contribution_meta(*bytes);
                    self.push(cx, self.scope.group.peer(owner), slice, meta);
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
        let slice = self.scope.own_aggregate(shard, attempt);
        let basis = self.scope.basis(shard, self.scope.group.me, attempt);
        let from = Source::Joined { basis, inputs };
        self.encode(cx, slice, from, Task::Aggregate(shard, attempt));
    }

    /// A second contribution does not fit the basis: its sender is left out. In ballots above zero two
    /// coordinators may have named two owners in one attempt, and it may be for the other one.
    fn without_second(
        &mut self,
        cx: &mut Context,
        (shard, attempt): (u16, Attempt),
        origin: PeerId,
        reason: &str,
    ) {
        // Only there is it sure for which owner's basis the contribution was made.
        if attempt == Attempt::FIRST {
            let what = format!("a second contribution that is bad: {reason}");
            cx.accuse(origin, what);
        }
        let left_out = self.scope.group.index(origin).map(Members::one);
        if let Some(duty) = self.reduction.duties.get_mut(&shard) {
            duty.progress = Progress::Collecting;
            duty.expected = duty.expected.without(left_out.unwrap_or_default());
        }
    }

    /// Tells the codec if this peer's second contribution to a shard is not in the decided version.
    pub(super) fn settle_second(&self, cx: &mut Context, shard: u16, version: &ShardVersion) {
        let me = self.scope.group.me;
        let slice = self.scope.second(shard, me, version.attempt);
        if !version.contributors.has(me) && self.transfers.slices.contains(&slice) {
            let outcome = Settlement::Lost;
            cx.order(Order::Settle { slice, outcome });
        }
    }

    /// Encodes this peer's contribution, which goes to all others.
    pub(super) fn offer(&mut self, cx: &mut Context) {
        let part = self.scope.group.me as u16;
        self.reduction
            .duties
            .insert(part, Duty::offer(self.scope.group.me));
        let slice = SliceId {
            part: Part::Aggregate,
            ..self.scope.contribution(part, self.scope.group.me)
        };
        let task = Task::Aggregate(part, Attempt::FIRST);
        self.encode(cx, slice, Source::Store(StoreId::Local), task);
    }

    /// All decided contributions are here.
    pub(super) fn gather_in(&mut self, cx: &mut Context, ballot: u8, versions: &[ShardVersion]) {
        let Some(decision) = self.plain_decision() else {
            return;
        };
        let inputs = if self.scope.scores() {
            let admitted = self.scorer().admitted(cx, &decision);
            match admitted.filter(|_| !self.over()) {
                Some(admitted) => admitted,
                None => return,
            }
        } else {
            inputs_of(&decision)
        };
        let me = self.scope.group.me;
        if self.reduction.encoded.contains_key(&(me as u16)) {
            let slice = SliceId {
                part: Part::Aggregate,
                ..self.scope.contribution(me as u16, me)
            };
            let mine = versions.get(me).is_some_and(|v| !v.contributors.is_empty());
            let outcome = settlement(mine);
            cx.order(Order::Settle { slice, outcome });
        }
        if inputs.is_empty() && self.scope.scores() {
            // No one helps. The anchor stays, and what was trained is given up: going on from it would lead
            // farther away.
            self.stop_waiting(cx);
            let (round, fragment) = (self.scope.round, self.scope.fragment);
            cx.emit(Event::Voided { round, fragment });
            self.ending = Some(Ending::Gather(inputs));
            return;
        }
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        if total <= 0.0 || cx.plan.too_few(inputs.len()) {
            // No member trained, or too few for a robust rule.
            self.void(cx);
            return;
        }
        self.emit_combined(cx, ballot, &inputs);
        self.ending = Some(Ending::Gather(inputs));
    }

    /// Reports whose contributions are combined.
    fn emit_combined(&self, cx: &mut Context, ballot: u8, inputs: &[(SliceId, f64)]) {
        let names = inputs.iter().map(|(s, w)| (s.origin, *w)).collect();
        self.scope.emit_decided(cx, ballot, vec![names]);
    }

    /// A contribution does not decode at any member: combines the rest, or gives `None`.
    pub(super) fn leave_out(
        &mut self,
        cx: &mut Context,
        bad: SliceId,
        reason: &str,
    ) -> Option<Ending> {
        let Some(Ending::Gather(inputs)) = &mut self.ending else {
            return None;
        };
        let all = inputs.len();
        inputs.retain(|(slice, _)| *slice != bad);
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        if inputs.len() == all || total <= 0.0 || cx.plan.too_few(inputs.len()) {
            return None;
        }
        // The same bytes fail at every member, so all combine the same rest.
        let (inputs, ending) = (inputs.clone(), self.ending.clone());
        cx.accuse(bad.origin, format!("a contribution that is bad: {reason}"));
        let ballot = self.agreement.decided.as_ref().map_or(0, |(b, _)| *b);
        self.emit_combined(cx, ballot, &inputs);
        ending
    }
}
