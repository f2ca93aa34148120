//! Scores: contributions may be judged before they are merged ([`Scoring`](crate::Scoring)).
//!
//! A member's scores of the others' contributions are a part of the round beside its own contribution: part n + i
//! holds those of member i, of n members. So members agree on scores as they agree on contributions: they push them,
//! vote on them by their hash, fetch them, and leave out in a ballot what no member holds. Once both are decided, every
//! member reads the same scores and merges the same contributions.
//!
//! A member evaluates contributions one after another once all that it waits for are here, or at the deadline.
//! The others wait for its scores as long as for contributions, and longer by what this member itself needed.

use super::decision::{inputs_of, scores_of};
use super::message::{FragmentMessage, Scoped};
use super::scope::Scope;
use super::state::{Duty, Holdings, Pass, Progress, Reduction, Task};
use crate::core::context::Context;
use crate::score::Judged;
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Attempt, Done, Event, Members, Order, PeerId, Score, Scores, SliceId, Source, WorkError,
};

/// Evaluates the others' contributions. Borrows its parts of the fragment's round.
pub(super) struct Scorer<'a> {
    pub(super) scope: &'a Scope,
    pub(super) holdings: &'a Holdings,
    pub(super) reduction: &'a mut Reduction,
}

impl Scorer<'_> {
    fn own_scores(&self) -> u16 {
        (self.scope.group.len() + self.scope.group.me) as u16
    }

    /// This peer is to score the contributions of all others that trained. One that is alone scores its own.
    pub(super) fn take_duty(&mut self) {
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

    /// Evaluates these members' contributions.
    pub(super) fn score(&mut self, cx: &mut Context, set: Members) {
        let part = self.own_scores();
        let Some(duty) = self.reduction.duties.get_mut(&part) else {
            return;
        };
        duty.progress = Progress::Combining;
        let scoring = &mut self.reduction.scores;
        scoring.queue = (set & duty.expected).iter().collect();
        // It is taken from its end, in the order of members.
        scoring.queue.reverse();
        scoring.began = cx.now;
        if scoring.queue.is_empty() {
            self.say(cx);
        } else {
            self.stage(cx, None);
        }
    }

    fn stage(&mut self, cx: &mut Context, about: Option<u16>) {
        let slice = about.and_then(|part| {
            let version = self.holdings.contribution(part)?;
            Some(self.scope.aggregate(part, version))
        });
        self.reduction
            .order(cx, Order::Stage { slice }, Task::Stage(about));
    }

    /// It is too late to say anything.
    pub(super) fn give_up(&mut self) {
        let part = self.own_scores();
        self.reduction.duties.remove(&part);
    }

    /// An order of the evaluation was answered.
    pub(super) fn evaluated(&mut self, cx: &mut Context, task: Task, done: &Done) {
        match (task, done) {
            (Task::Stage(about), Done::Combined) => {
                let round = self.scope.round;
                let batches = self.scope.batches();
                let order = Order::Measure { round, batches };
                self.reduction.order(cx, order, Task::Measure(about));
            }
            (Task::Measure(None), Done::Measured { loss }) => {
                self.reduction.scores.before = Some(*loss);
                self.score_next(cx);
            }
            (Task::Measure(Some(part)), Done::Measured { loss }) => {
                let before = self.reduction.scores.before.unwrap_or(f64::NAN);
                let score = Score::of(before, *loss);
                self.reduction.scores.own.insert(usize::from(part), score);
                self.score_next(cx);
            }
            (Task::Stage(Some(part)), Done::Failed(WorkError::BadSlice { slice, reason, .. })) => {
                let what = format!("a contribution that is bad: {reason}");
                cx.accuse(slice.origin, what);
                let own = &mut self.reduction.scores.own;
                // It does not decode, so it cannot help; the others find the same.
                own.insert(usize::from(part), Score::WORST);
                self.score_next(cx);
            }
            (_, done) => {
                // This peer cannot evaluate: it says what it has found so far.
                let what = format!("cannot score contributions: {done:?}");
                cx.emit(Event::WorkFailed { what });
                self.say(cx);
            }
        }
    }

    fn score_next(&mut self, cx: &mut Context) {
        match self.reduction.scores.queue.pop() {
            Some(index) => self.stage(cx, Some(index as u16)),
            None => self.say(cx),
        }
    }

    /// Everything is evaluated: the scores become a part of the round.
    fn say(&mut self, cx: &mut Context) {
        let (part, members) = (self.own_scores(), self.scope.group.len());
        let slice = self.scope.own_aggregate(part, Attempt::FIRST);
        let Some(duty) = self.reduction.duties.get_mut(&part) else {
            return;
        };
        duty.progress = Progress::Encoding;
        let scoring = &mut self.reduction.scores;
        scoring.queue.clear();
        scoring.took = cx.now.since(scoring.began);
        let bytes = Scores::of(members, &scoring.own).to_bytes();
        let task = Task::Aggregate(part, Attempt::FIRST);
        let order = Order::Encode {
            slice,
            of: 1,
            from: Source::Bytes(bytes),
        };
        self.reduction.order(cx, order, task);
    }

    /// All decided parts are here: which contributions are merged. `None` while scores are being read.
    pub(super) fn admitted(
        &mut self,
        cx: &mut Context,
        decision: &Scoped,
    ) -> Option<Vec<(SliceId, f64)>> {
        if self.reduction.scores.unread.is_none() {
            self.read(cx, decision);
        }
        let scoring = &self.reduction.scores;
        let read = scoring.unread.as_ref().is_some_and(SortedSet::is_empty);
        read.then(|| admit(cx, decision, &scoring.said))
    }

    fn read(&mut self, cx: &mut Context, decision: &Scoped) {
        let mut unread = SortedSet::new();
        for slice in scores_of(decision) {
            let part = self.scope.part_of(&slice);
            unread.insert(part);
            self.reduction
                .order(cx, Order::Read { slice }, Task::Read(part));
        }
        self.reduction.scores.unread = Some(unread);
    }

    /// The scores of a member were read; `false` where this peer alone lacks them.
    pub(super) fn was_read(&mut self, cx: &mut Context, part: u16, done: &Done) -> bool {
        let members = self.scope.group.len();
        let scorer = self.scope.group.peer(usize::from(part) % members);
        let scoring = &mut self.reduction.scores;
        if let Some(unread) = &mut scoring.unread {
            unread.remove(&part);
        }
        let Done::Read { bytes } = done else {
            return false;
        };
        match Scores::from_bytes(bytes, members) {
            Some(said) => {
                scoring.said.insert(scorer, said);
            }
            None => cx.accuse(scorer, "scores that are none".to_owned()),
        }
        true
    }
}

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
    // A member that did not train has sent nothing to judge.
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
