//! Gathered contributions that are scored before they are merged ([`Scoring`](crate::Scoring)).
//!
//! What a member says about the others' contributions is a part of the round beside its own contribution: part
//! n + i is what member i says, of n members. So members agree on scores as they agree on contributions: they
//! push them, vote on them by their hash, fetch them, and leave out in a ballot what no member holds. Once
//! both are decided, every member reads the same scores and merges the same contributions.
//!
//! A member evaluates contributions one after another once all that it waits for are here, or at the deadline.
//! The others wait for its scores as long as for contributions, and longer by what this member itself needed.

use super::duty::{Duty, Pass, Progress};
use super::fragment::FragmentRound;
use super::message::{FragmentMessage, Scoped};
use super::state::Task;
use crate::core::context::Context;
use crate::exchange::{inputs_of, scores_of};
use crate::score::Judged;
use crate::{Attempt, Done, Event, Members, Order, PeerId, Score, Scores, SliceId, WorkError};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// How many times as long as it needed itself a member waits for the scores of others, beside the usual wait:
/// members' machines differ.
const PATIENCE: u32 = 3;

impl FragmentRound {
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

    /// How much longer this peer waits for others because they score, too.
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
        match scoring.queue.is_empty() {
            true => self.say_scores(cx),
            false => self.stage(cx, None),
        }
    }

    fn stage(&mut self, cx: &mut Context, about: Option<u16>) {
        let version = |part: &u16| {
            self.held
                .get(part)?
                .iter()
                .find(|v| !v.contributors.is_empty())
        };
        let slice = about.and_then(|part| Some(self.scope.aggregate(part, version(&part)?)));
        let order = cx.order(Order::Stage { slice });
        self.reduction.tasks.insert(order, Task::Stage(about));
    }

    /// An order of the evaluation was answered, or one that reads what others say.
    pub(super) fn scoring_answered(&mut self, cx: &mut Context, task: Task, done: &Done) {
        if let Task::Read(part) = task {
            self.scores_read(cx, part, done);
            return;
        }
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
                let order = cx.order(Order::Measure { round, batches });
                self.reduction.tasks.insert(order, Task::Measure(about));
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
                cx.accuse(
                    slice.origin,
                    format!("a contribution that is bad: {reason}"),
                );
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
        let order = cx.order(Order::Keep { slice, bytes });
        let task = Task::Aggregate(part, Attempt::FIRST);
        self.reduction.tasks.insert(order, task);
    }

    /// All decided parts are here: which contributions are merged. `None` while scores are being read.
    pub(super) fn admitted(&mut self, cx: &mut Context) -> Option<Vec<(SliceId, f64)>> {
        let decision = self.plain_decision()?;
        if self.reduction.scoring.unread.is_none() {
            self.read_scores(cx, &decision);
        }
        let scoring = &self.reduction.scoring;
        let read = scoring.unread.as_ref().is_some_and(BTreeSet::is_empty);
        (read && !self.over()).then(|| admit(cx, &decision, &scoring.said))
    }

    fn read_scores(&mut self, cx: &mut Context, decision: &Scoped) {
        let mut unread = BTreeSet::new();
        for slice in scores_of(decision) {
            let part = self.scope.part_of(&slice);
            unread.insert(part);
            let order = cx.order(Order::Read { slice });
            self.reduction.tasks.insert(order, Task::Read(part));
        }
        self.reduction.scoring.unread = Some(unread);
    }

    fn scores_read(&mut self, cx: &mut Context, part: u16, done: &Done) {
        let members = self.scope.group.len();
        let scorer = self.scope.group.peer(usize::from(part) % members);
        let scoring = &mut self.reduction.scoring;
        if let Some(unread) = &mut scoring.unread {
            unread.remove(&part);
        }
        let Done::Read { bytes } = done else {
            // Only this peer lacks them: it cannot tell what the others merge.
            let other = self.scope.group.others().map(|(_, peer)| peer).next();
            self.missed = self.missed.or(other);
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

/// The contributions to a decision that its members admit, with their weights: none if they are too few. Where
/// there are some, keeps the scores until the round is over.
pub(crate) fn admit(
    cx: &mut Context,
    decision: &Scoped,
    said: &BTreeMap<PeerId, Scores>,
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
    match none {
        true => Vec::new(),
        false => inputs,
    }
}
