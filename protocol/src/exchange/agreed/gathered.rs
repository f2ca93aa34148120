//! Contributions gathered: every member pushes its contribution, as it was encoded, to all others,
//! and each member combines all of them itself, in `PeerId` order. This suits codecs whose sums
//! cannot be encoded again without loss.
//!
//! ```text
//! a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on
//! ```
//!
//! Members vote on contributions instead of shards: part i is member i's contribution, by the hash
//! of its bytes. If a dead member served some members, the others fetch its contribution from them.
//! If no member holds it, a ballot leaves it out, as a version without contributors. A contribution
//! that does not decode fails in the same way at every member, so all leave it out. Groups, votes,
//! ballots and history are those of the all-reduce.
//!
//! Cost per round with n members, f fragments and a contribution of m encoded bytes: f (n - 1)
//! pushes of m / f bytes each by every member, n f (n - 1) in all; control messages as in
//! all-reduce. Each member decodes n contributions. Latency: group, contributions, votes. Cheaper
//! than the butterfly's 2 m (n - 1) / n where the reduction is encoded worse than n / 2 times as
//! long as a contribution.
//!
//! **Source:** the all-gather of sparse gradients in Lin et al. 2018, "Deep Gradient Compression",
//! section 3, and Xu et al. 2021, "GRACE", section IV; agreement: Lamport 2001, "Paxos Made
//! Simple".

use super::ballot::{Ballot, ShardVersion};
use super::duty::Duty;
use super::fragment::FragmentRound;
use super::state::{Target, Task};
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::{Attempt, Digest, Event, Members, Order, Part, PeerId, Settlement, SliceId, StoreId};

impl FragmentRound {
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
        let store = StoreId::Local;
        let order = cx.order(Order::Encode {
            store,
            slice,
            of: 1,
        });
        self.reduction
            .tasks
            .insert(order, Task::Aggregate(part, Attempt::FIRST));
    }

    /// A ballot that leaves a member's contribution out.
    pub(super) fn absence(&self, ballot: Ballot, part: u16) -> Target {
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

    /// Notes that a contribution is left out. This version has no bytes to hold.
    pub(super) fn do_without(&mut self, part: u16, version: Option<ShardVersion>) {
        let versions = self.held.entry(part).or_default();
        if let Some(version) = version.filter(|v| !versions.contains(v)) {
            versions.push(version);
        }
    }

    /// All decided contributions are here.
    pub(super) fn gather_in(&mut self, cx: &mut Context, ballot: u8, versions: &[ShardVersion]) {
        let inputs = match self.scope.scoring {
            None => self.present(versions),
            Some(_) => match self.admitted(cx) {
                Some(admitted) => admitted,
                None => return,
            },
        };
        let me = self.scope.group.me;
        if self.reduction.encoded.contains_key(&(me as u16)) {
            let slice = SliceId {
                part: Part::Aggregate,
                ..self.scope.contribution(me as u16, me)
            };
            let mine = versions.get(me).is_some_and(|v| !v.contributors.is_empty());
            let outcome = match mine {
                true => Settlement::Delivered,
                false => Settlement::Lost,
            };
            cx.order(Order::Settle { slice, outcome });
        }
        if inputs.is_empty() && self.scope.scoring.is_some() {
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
        self.state(cx, ballot, &inputs);
        self.ending = Some(Ending::Gather(inputs));
    }

    /// The contributions that were not left out, with their weights.
    fn present(&self, versions: &[ShardVersion]) -> Vec<(SliceId, f64)> {
        let present = (0u16..)
            .zip(versions)
            .zip(&self.scope.group.members)
            .filter(|((_, version), _)| !version.contributors.is_empty());
        present
            .map(|((part, version), member)| (self.scope.aggregate(part, version), member.weight))
            .collect()
    }

    /// Reports whose contributions are combined.
    fn state(&self, cx: &mut Context, ballot: u8, inputs: &[(SliceId, f64)]) {
        let names: Vec<(PeerId, f64)> = inputs.iter().map(|(s, w)| (s.origin, *w)).collect();
        let (round, fragment) = (self.scope.round, self.scope.fragment);
        cx.emit(Event::Decided {
            round,
            fragment,
            ballot,
            contributors: vec![names],
        });
    }

    /// A contribution does not decode, here and at every other member: combines the rest. `None`
    /// when nothing is left.
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
        let (inputs, ending) = (inputs.clone(), self.ending.clone());
        cx.accuse(bad.origin, format!("a contribution that is bad: {reason}"));
        let ballot = self.agreement.decided.as_ref().map_or(0, |(b, _)| *b);
        self.state(cx, ballot, &inputs);
        ending
    }
}
