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
//!
//! # Scores
//!
//! Contributions may be scored before they are merged ([`Scoring`](crate::Scoring)). A member's scores of the
//! others' contributions are a part of the round beside its own contribution: part n + i holds those of member i,
//! of n members. So members agree on scores as they agree on contributions: they push them, vote on them by their
//! hash, fetch them, and leave out in a ballot what no member holds. Once both are decided, every member reads the
//! same scores and merges the same contributions.
//!
//! A member evaluates contributions one after another once all that it waits for are here, or at the deadline.
//! The others wait for its scores as long as for contributions, and longer by what this member itself needed.

use super::ballot::{Ballot, ShardVersion};
use super::decision::{inputs_of, scores_of};
use super::fragment::FragmentRound;
use super::message::{FragmentMessage, Scoped};
use super::state::{Duty, Pass, Progress, Target, Task};
use crate::core::context::Context;
use crate::exchange::settlement;
use crate::score::Judged;
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Attempt, Digest, Done, Ending, Event, Members, Order, Part, PeerId, Score, Scores, SliceId,
    Source, StoreId, WorkError,
};
use core::time::Duration;

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
        let order = Order::Encode {
            slice,
            of: 1,
            from: Source::Store(StoreId::Local),
        };
        self.order(cx, order, Task::Aggregate(part, Attempt::FIRST));
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
            let outcome = settlement(mine);
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
            .map(|((part, version), member)| {
                (self.scope.aggregate(part, version), member.said.weight)
            })
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

    /// The part with this peer's scores.
    fn own_scores(&self) -> u16 {
        (self.scope.group.len() + self.scope.group.me) as u16
    }

    /// This peer is to score the contributions of all others that trained. One that is alone scores its own.
    pub(super) fn take_scoring_duty(&mut self) {
        let (group, own) = (&self.scope.group, Members::one(self.scope.group.me));
        let expected = match group.len() {
            1 => own,
            _ => group.bringing().without(own),
        };
        let duty = Duty {
            included: own,
            pass: Pass::Scores,
            ..Duty::new(Attempt::FIRST, expected)
        };
        self.reduction.duties.insert(self.own_scores(), duty);
    }

    /// Members whose contributions are here.
    pub(super) fn contributed(&self) -> Members {
        let whole = |index: &usize| {
            let held = self.held.get(&(*index as u16));
            held.is_some_and(|versions| versions.iter().any(|v| !v.contributors.is_empty()))
        };
        (0..self.scope.group.len()).filter(whole).collect()
    }

    /// Time that this peer waits for others beside the usual wait, because they score, too.
    pub(super) fn patience(&self) -> Duration {
        self.reduction.scoring.took * PATIENCE
    }

    /// Evaluates these members' contributions.
    pub(super) fn score(&mut self, cx: &mut Context, set: Members) {
        let part = self.own_scores();
        let Some(duty) = self.reduction.duties.get_mut(&part) else {
            return;
        };
        duty.progress = Progress::Combining;
        let scoring = &mut self.reduction.scoring;
        scoring.queue = (set & duty.expected).iter().collect();
        scoring.queue.reverse();
        scoring.began = cx.now;
        if scoring.queue.is_empty() {
            self.say_scores(cx);
        } else {
            self.stage(cx, None);
        }
    }

    fn stage(&mut self, cx: &mut Context, about: Option<u16>) {
        let slice = about.and_then(|part| {
            let mut versions = self.held.get(&part)?.iter();
            let version = versions.find(|v| !v.contributors.is_empty())?;
            Some(self.scope.aggregate(part, version))
        });
        self.order(cx, Order::Stage { slice }, Task::Stage(about));
    }

    /// An order of the evaluation was answered.
    pub(super) fn evaluated(&mut self, cx: &mut Context, task: Task, done: &Done) {
        if self.over() || self.agreement.decided.is_some() {
            // It is too late to say anything.
            let part = self.own_scores();
            self.reduction.duties.remove(&part);
            return;
        }
        match (task, done) {
            (Task::Stage(about), Done::Combined) => {
                let round = self.scope.round;
                let batches = self.scope.scoring.map_or(1, |scoring| scoring.batches);
                let order = Order::Measure { round, batches };
                self.order(cx, order, Task::Measure(about));
            }
            (Task::Measure(None), Done::Measured { loss }) => {
                self.reduction.scoring.before = Some(*loss);
                self.score_next(cx);
            }
            (Task::Measure(Some(part)), Done::Measured { loss }) => {
                let before = self.reduction.scoring.before.unwrap_or(f64::NAN);
                let score = Score::of(before, *loss);
                self.reduction.scoring.own.insert(usize::from(part), score);
                self.score_next(cx);
            }
            (Task::Stage(Some(part)), Done::Failed(WorkError::BadSlice { slice, reason, .. })) => {
                let what = format!("a contribution that is bad: {reason}");
                cx.accuse(slice.origin, what);
                let own = &mut self.reduction.scoring.own;
                own.insert(usize::from(part), Score::WORST);
                self.score_next(cx);
            }
            (_, done) => {
                // This peer cannot evaluate: it says what it has found so far.
                let what = format!("cannot score contributions: {done:?}");
                cx.emit(Event::WorkFailed { what });
                self.say_scores(cx);
            }
        }
    }

    fn score_next(&mut self, cx: &mut Context) {
        match self.reduction.scoring.queue.pop() {
            Some(index) => self.stage(cx, Some(index as u16)),
            None => self.say_scores(cx),
        }
    }

    /// Everything is evaluated: the scores become a part of the round.
    fn say_scores(&mut self, cx: &mut Context) {
        let (part, members) = (self.own_scores(), self.scope.group.len());
        let slice = self.own_aggregate(part, Attempt::FIRST);
        let Some(duty) = self.reduction.duties.get_mut(&part) else {
            return;
        };
        duty.progress = Progress::Encoding;
        let scoring = &mut self.reduction.scoring;
        scoring.queue.clear();
        scoring.took = cx.now.since(scoring.began);
        let bytes = Scores::of(members, &scoring.own).to_bytes();
        let task = Task::Aggregate(part, Attempt::FIRST);
        let order = Order::Encode {
            slice,
            of: 1,
            from: Source::Bytes(bytes),
        };
        self.order(cx, order, task);
    }

    /// All decided parts are here: which contributions are merged. `None` while scores are being read.
    pub(super) fn admitted(&mut self, cx: &mut Context) -> Option<Vec<(SliceId, f64)>> {
        let decision = self.plain_decision()?;
        if self.reduction.scoring.unread.is_none() {
            self.read_scores(cx, &decision);
        }
        let scoring = &self.reduction.scoring;
        let read = scoring.unread.as_ref().is_some_and(SortedSet::is_empty);
        (read && !self.over()).then(|| admit(cx, &decision, &scoring.said))
    }

    fn read_scores(&mut self, cx: &mut Context, decision: &Scoped) {
        let mut unread = SortedSet::new();
        for slice in scores_of(decision) {
            let part = self.scope.part_of(&slice);
            unread.insert(part);
            self.order(cx, Order::Read { slice }, Task::Read(part));
        }
        self.reduction.scoring.unread = Some(unread);
    }

    /// What a member says about contributions was read.
    pub(super) fn scores_read(&mut self, cx: &mut Context, part: u16, done: &Done) {
        let members = self.scope.group.len();
        let scorer = self.scope.group.peer(usize::from(part) % members);
        let scoring = &mut self.reduction.scoring;
        if let Some(unread) = &mut scoring.unread {
            unread.remove(&part);
        }
        let Done::Read { bytes } = done else {
            // Only this peer lacks them: it cannot tell what the others merge.
            self.missed = self.missed.or(self.scope.group.other_peers().next());
            return;
        };
        match Scores::from_bytes(bytes, members) {
            Some(said) => {
                scoring.said.insert(scorer, said);
            }
            None => cx.accuse(scorer, "scores that are none".to_owned()),
        }
    }
}

/// How many times as long as it needed itself a member waits for the scores of others, beside the usual wait:
/// members' machines differ.
const PATIENCE: u32 = 3;

/// The contributions to a decision that its members admit, with their weights: none if they are too few. Where
/// there are some, keeps the scores until the round is over.
pub(crate) fn admit(
    cx: &mut Context,
    decision: &Scoped,
    said: &SortedMap<PeerId, Scores>,
) -> Vec<(SliceId, f64)> {
    let FragmentMessage::Decided {
        members, versions, ..
    } = &decision.body
    else {
        return Vec::new();
    };
    let Some(scoring) = cx.plan.agreement.scoring else {
        return Vec::new();
    };
    let mut inputs = inputs_of(decision);
    inputs.retain(|(_, weight)| *weight > 0.0);
    let judged = inputs.iter().filter_map(|(slice, _)| {
        let index = members.iter().position(|m| m.peer == slice.origin)?;
        // No member has a voice about itself, unless there is no other.
        let heard = said
            .iter()
            .filter(|(by, _)| **by != slice.origin || members.len() == 1);
        Some(Judged {
            peer: slice.origin,
            digest: versions.get(index)?.digest,
            said: heard.filter_map(|(_, said)| said.about(index)).collect(),
        })
    });
    let judged: Vec<Judged> = judged.collect();
    let verdict = cx.data.ratings.judge(scoring, &judged);
    inputs.retain(|(slice, _)| verdict.admitted.contains(&slice.origin));
    let none = cx.plan.too_few(inputs.len());
    // Ratings change only with the anchor. A member that lost the votes of a round whose anchor stays goes on with
    // the others, and must rate as they do.
    cx.data.judged = (!none).then_some((decision.round, verdict.scores));
    if none { Vec::new() } else { inputs }
}
