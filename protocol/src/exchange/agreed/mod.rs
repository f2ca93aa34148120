//! Exchanges with agreement (all-reduce along a schedule, gathered, parameter server in step):
//! survivors hold the same bits, the weighted mean of a stated set of contributions.
//!
//! Life of a round: `grouping` forms the group, and `forming` says what follows; one `FragmentRound` a fragment
//! (`fragment`) reduces its shards (`reduce`, `carry_out`), votes on them and replaces the shards of dead members
//! (`vote`); `history` keeps decisions for late peers. Where groups survive liars, `sealed` forms them and
//! `signed` votes and repairs, by the rule in `rule`. `meeting`, with the rounds that `forming` remembers, brings
//! the sides of a swarm that was split together again.
//!
//! Messages per round and member when all is well, with n members and f fragments: one `Ready` and
//! one `Propose` (n - 1 of the latter by the proposer), f (n - 1) votes; 2 f (n - 1) pushes of
//! about 1/n of a fragment each. Latency: group (one round trip), contributions, aggregates, votes.
//!
//! A round's fragments (all of them, or some of them if they are staggered) are opened in order, a
//! window at a time (`fragments`). A decided fragment goes to the Executor at once and its bytes are released, so
//! memory follows the window and not the model. No member is more than a window ahead of the
//! slowest one that it still waits for, because every fragment needs a shard of each.

mod agreement;
mod carry_out;
mod cell_round;
pub(crate) mod column;
mod decision;
mod electorate;
mod forming;
mod fragment;
mod fragments;
mod group;
mod grouping;
mod history;
mod meeting;
mod member;
mod message;
mod owners;
mod pipeline;
mod reduce;
mod rule;
mod scope;
mod scorer;
mod sealed;
mod signed;
mod signed_message;
mod state;
mod testimony;
mod vote;

pub(crate) use cell_round::CellRound;
pub(crate) use decision::{digests_of, inputs_of, proven, scores_of, slices_of};
pub(crate) use electorate::ahead;
pub(crate) use fragment::FragmentRound;
pub(crate) use fragments::Early;
pub(crate) use history::History;
pub use member::{Ballot, Held, Member, Said, ShardPlan, ShardVersion, Whereabouts, value_of};
pub use message::{
    AgreedMessage, FormingMessage, FragmentMessage, Head, MergeSide, Promise, Proposal, Proposed,
    Scoped,
};
pub(crate) use scorer::admit;
pub use signed_message::{
    Pledge, Seat, Seated, SignedGroup, SignedMessage, Stated, VoteCertificate,
};

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{
    Arrived, Exchange, ExchangeMessage, Outcome, Signal, broke, forbid, foreign_message,
    foreign_tag,
};
use crate::limits::{EARLY_SCHEDULED_MAX, EARLY_SLICES_MAX, ROUNDS_AHEAD_MAX};
use crate::{
    Checked, Ending, FragmentId, GroupTag, Layers, Members, PeerId, Plan, Round, SliceId,
    TrainSummary, Wait, Weighing,
};
use electorate::{Tellers, signs};
use fragments::{Fragments, window};
use group::Group;
use grouping::{Grouping, Ready};
use history::note_round;
use pipeline::Programs;
use scope::EXCHANGE;

/// The agreed exchange of one peer.
#[derive(Default)]
pub(crate) struct Agreed {
    grouping: Grouping,
    group: Option<Group>,
    /// This peer's part in the schedule of such a group.
    programs: Programs,
    /// The round's fragments opened so far.
    fragments: Fragments,
    /// Fragments that have left so far, where they leave under the backward pass.
    cut: Vec<FragmentId>,
    /// Members that are in another group of this round.
    elsewhere: Members,
    /// Members that do not join the group.
    declined: Members,
    /// Peers that say that this round continues without this peer.
    tellers: Tellers,
    early: Early,
    history: History,
    /// Outcome of a round without a group, once every fragment has left the training.
    alone: Option<Outcome>,
    /// Set where no group came about: every fragment is void.
    no_group: bool,
    outcome: Option<Outcome>,
    /// Inner steps of rounds whose training is still to be contributed.
    carried: Carried,
}

impl Agreed {
    /// After every signal: the timer follows the earliest open deadline.
    fn settle(&mut self, cx: &mut Context) {
        if self.group.is_none() || self.outcome.is_some() {
            return;
        }
        // Losses first: they may end fragments, which makes room in the window.
        self.fragments.share_losses(cx);
        self.open(cx);
        let all = &self.fragments.all;
        if let Some(teller) = all.iter().find_map(|fragment| fragment.missed) {
            cx.timers.stop(Timer::Exchange);
            let resync = true;
            self.outcome
                .get_or_insert(Outcome::Behind { teller, resync });
            return;
        }
        if self.alone.is_none() && all.iter().any(|round| round.agreement.is_spent()) {
            self.try_again(cx);
            return;
        }
        match self.fragments.due() {
            Some(deadline) => cx.timers.set(Timer::Exchange, deadline),
            // The other fragments are still in this peer's backward pass: no other peer is awaited.
            None if !self.all_cut(cx) => cx.timers.stop(Timer::Exchange),
            None => {
                cx.timers.stop(Timer::Exchange);
                self.outcome.get_or_insert(Outcome::Ended);
            }
        }
    }

    /// Every fragment of the round has left this peer's training.
    fn all_cut(&self, cx: &Context) -> bool {
        let together = cx.plan.overlap.layers == Layers::Together;
        together || self.cut.len() == cx.plan.fragments.len()
    }

    /// Opens the next fragments while the window has room.
    fn open(&mut self, cx: &mut Context) {
        let Some(group) = self.group.clone() else {
            return;
        };
        let window = window(&cx.plan);
        loop {
            if self.fragments.open().count() >= window {
                return;
            }
            let Some(next) = self.next_to_open(cx) else {
                return;
            };
            self.open_one(cx, next, group.clone());
        }
    }

    /// The next fragment that has left the training. All peers open them in one order, or all at
    /// once: otherwise two could each wait for a fragment that the other has not opened.
    fn next_to_open(&self, cx: &Context) -> Option<FragmentId> {
        let opened = self.fragments.all.len();
        let next = || cx.plan.fragments_of(cx.round).nth(opened);
        match cx.plan.overlap.layers {
            Layers::Together => next(),
            Layers::AsReady => next().filter(|fragment| self.cut.contains(fragment)),
            Layers::ByPriority | Layers::IntoForward | Layers::Decoupled => {
                self.cut.get(opened).copied()
            }
        }
    }

    /// Opens one fragment and delivers the slices and messages that came early.
    fn open_one(&mut self, cx: &mut Context, fragment: FragmentId, group: Group) {
        let program = self.programs.of(&cx.plan, &group, cx.round);
        let lost = self.fragments.lost;
        let mut opened = FragmentRound::new(cx, fragment, group, program, lost);
        if self.has_joined(cx) {
            opened.may_sign();
        }
        opened.advance(cx);
        self.fragments.insert(opened);
        let round = cx.round;
        let belongs = |r: Round, f: FragmentId| r == round && f == fragment;
        for arrived in self.early.take_slices(belongs) {
            if let Err(error) = self.arrived(cx, arrived) {
                cx.accuse(arrived.from, error.to_string());
            }
        }
        for (from, message) in self.early.take_messages(belongs) {
            if let Err(error) = self.deliver(cx, from, &message) {
                cx.accuse(from, error.to_string());
            }
        }
    }

    /// A member's link is gone, or it is in another group: no fragment waits for it.
    fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        self.fragments.gone(cx, peer);
        self.early.drop_of(cx, peer);
    }
}

impl Exchange for Agreed {
    fn begin(&mut self, cx: &mut Context, summary: &TrainSummary) {
        self.outcome = None;
        self.no_group = false;
        self.alone = None;
        let weight = match cx.rests() {
            // A peer whose masked contribution could not be made would leave the others without a
            // result.
            true => 0.0,
            false => self.carried.weigh(cx.plan.agreement.weighing, summary),
        };
        let formed = self.grouping.begin(cx, weight);
        self.formed(cx, formed);
        self.settle(cx);
    }

    fn cut(&mut self, cx: &mut Context, fragment: FragmentId) {
        if !self.cut.contains(&fragment) {
            self.cut.push(fragment);
        }
        self.go_alone(cx);
        self.settle(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked {
        let mut result = Ok(());
        match signal {
            Signal::Message { from, message } => result = self.message(cx, from, message),
            Signal::Arrived(arrived) => result = self.arrived(cx, arrived),
            Signal::Pushed(end) => self.fragments.pushed(cx, end),
            Signal::Fetched { slice, digest } => {
                let open = self.fragments.fetched(cx, slice, digest);
                if !open && !self.history.keeps(&slice) {
                    cx.release(slice);
                }
            }
            Signal::FetchFailed(slice) => self.fragments.fetch_failed(cx, slice),
            Signal::Done { order, done } => self.fragments.done(cx, order, done),
            Signal::Gone(peer) => {
                self.grouping.joined.forget(peer);
                self.gone(cx, peer);
                self.gone_from_forming(cx, peer);
            }
            Signal::Timeout => {
                self.leave_unless_joined(cx);
                self.fragments.timeout(cx);
                self.forming_timeout(cx);
            }
            Signal::Heard(peer) => {
                let formed = self.grouping.meeting.heard(cx, peer);
                self.brought_together(cx, formed);
                self.stop_forming(cx);
            }
        }
        self.settle(cx);
        result
    }

    fn ended(&mut self, cx: &Context) -> Vec<(FragmentId, Ending)> {
        if std::mem::take(&mut self.no_group) {
            let all = cx.plan.fragments_of(cx.round);
            return all.map(|f| (f, Ending::Void)).collect();
        }
        self.fragments.ended()
    }

    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        self.fragments.applied(cx, fragment, &mut self.history);
    }

    fn without(&mut self, cx: &mut Context, bad: SliceId, reason: &str) -> Option<Ending> {
        self.fragments.without(cx, bad, reason)
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn merge_is_due(&self, cx: &Context) -> bool {
        self.grouping.meeting.due(cx)
    }

    fn merge(&mut self, cx: &mut Context) {
        self.meet_branches(cx);
        self.settle(cx);
    }

    fn finish(&mut self, cx: &mut Context) {
        let all = &self.fragments.all;
        note_round(cx, self.group.as_ref(), all);
        let void = |f: &FragmentRound| matches!(f.ending, Some(Ending::Void));
        let none = self.group.is_none() || all.iter().any(void);
        self.carried.ended(none);
        self.grouping.end(cx);
        self.end_merge(cx);
        cx.timers.stop(Timer::Exchange);
        self.group = None;
        self.cut.clear();
        self.alone = None;
        self.fragments.lost = Members::NONE;
        self.elsewhere = Members::NONE;
        self.release(cx);
        self.early.forget_the_round(cx, |_| false);
    }

    fn group(&self) -> Option<GroupTag> {
        self.group.as_ref().map(|group| group.tag)
    }

    fn history(&self) -> Option<&History> {
        Some(&self.history)
    }

    fn history_mut(&mut self) -> Option<&mut History> {
        Some(&mut self.history)
    }

    fn waiting(&self) -> usize {
        self.early.len()
    }

    fn awaited(&self, cx: &Context, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        let meeting = &self.grouping.meeting;
        match wait {
            Wait::Group if meeting.active() => meeting.silent(cx),
            Wait::Group => self.grouping.awaited(cx),
            _ => self.fragments.awaited(fragment),
        }
    }
}

/// Inner steps behind the contribution of this round. After a void round the next contribution holds the training
/// of both, so where weights count inner steps, these add up.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    /// Of rounds before this one that were void.
    before: u64,
    /// Of this round.
    now: u64,
}

impl Carried {
    /// The weight of a contribution after this training.
    fn weigh(&mut self, weighing: Weighing, summary: &TrainSummary) -> f64 {
        self.now = summary.steps;
        let before = if weighing == Weighing::Steps {
            self.before
        } else {
            0
        };
        weighing.weigh(summary.samples, before + self.now)
    }

    /// A round has ended, perhaps without a result.
    fn ended(&mut self, void: bool) {
        self.before = if void { self.before + self.now } else { 0 };
        self.now = 0;
    }
}

/// Slices of one peer that may wait for a round or a fragment.
fn early_slices_max(plan: &Plan) -> usize {
    if plan.schedule.relays() || plan.agreement.parts > 0 {
        EARLY_SCHEDULED_MAX
    } else {
        EARLY_SLICES_MAX
    }
}

impl Agreed {
    pub(super) fn message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Checked {
        let forming = match message {
            ExchangeMessage::Agreed(AgreedMessage::Forming(forming)) => forming,
            ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) => {
                return self.deliver(cx, from, scoped);
            }
            other => return Err(foreign_message(other, EXCHANGE)),
        };
        // The plan says which messages form groups, so an honest peer sends no others.
        forbid(
            !forming.fits(&cx.plan),
            "a group of another kind: its members sign, or ours do",
        )?;
        forbid(
            !forming.weighs(cx.plan.agreement.weighing),
            "a weight that is no count",
        )?;
        if !cx.says_losses() && forming.says_a_loss() {
            return broke("a loss in a run whose pace does not follow it");
        }
        if self.about_a_merge(cx, from, forming) {
            return Ok(());
        }
        if let Some((proposed, around)) = forming.proposal() {
            return self.proposed(cx, from, proposed, &around);
        }
        match forming {
            FormingMessage::Ready {
                round,
                said,
                anchor,
                proposes,
            } => {
                let ready = Ready {
                    round: *round,
                    said: *said,
                    anchor: *anchor,
                    proposes: *proposes,
                    seat: None,
                };
                self.ready(cx, from, ready);
                Ok(())
            }
            FormingMessage::Decline { round, .. } => {
                if *round == cx.round {
                    // It is in another group of the round, or none: nothing is expected of it here.
                    self.gone(cx, from);
                }
                Ok(())
            }
            FormingMessage::Behind { round, resync } => {
                // A word about a round that this peer has ended meanwhile says nothing.
                if *round > cx.round {
                    self.passed_by(cx, from, *resync);
                }
                Ok(())
            }
            signed => {
                self.signed_forming(cx, from, signed);
                Ok(())
            }
        }
    }

    fn signed_forming(&mut self, cx: &mut Context, from: PeerId, message: &FormingMessage) {
        match message {
            FormingMessage::SignedReady {
                round,
                anchor,
                proposes,
                seat,
            } => {
                let ready = Ready {
                    round: *round,
                    said: Said::new(seat.weight),
                    anchor: *anchor,
                    proposes: *proposes,
                    seat: Some(*seat),
                };
                self.ready(cx, from, ready);
            }
            FormingMessage::SignedPropose(proposal) => self.proposed_signed(cx, from, proposal),
            FormingMessage::Left {
                round,
                group,
                ready,
            } if *round == cx.round => {
                self.grouping.left_by(from, *round, *group, *ready);
                self.left_by(cx, from, *group);
            }
            FormingMessage::Joined { round, group } => {
                // It may come before the group is known here, so it is noted by its tag.
                self.grouping.joined.note(from, *round, *group);
                self.vote_once_joined(cx);
                self.settle(cx);
            }
            // Groups that do not sign, and merges, have arms of their own.
            _ => {}
        }
    }

    fn ready(&mut self, cx: &mut Context, from: PeerId, ready: Ready) {
        // It came too late for this group: it is told how the round went on.
        if ready.round < cx.round || (ready.round == cx.round && self.group.is_some()) {
            self.late(cx, from, ready);
            return;
        }
        let formed = self.grouping.ready(cx, from, ready);
        self.formed(cx, formed);
    }

    pub(super) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Checked {
        let Arrived { slice, meta, .. } = arrived;
        if !cx.plan.overlap.exchanges(slice.round, slice.fragment) {
            cx.release(slice);
            return broke("a slice of a fragment whose round it is not");
        }
        let Some(group) = meta.tag.group() else {
            cx.release(slice);
            return Err(foreign_tag(meta.tag, EXCHANGE));
        };
        // A merge is in the round after the furthest side's, which may be far ahead of this peer.
        let (current, reach) = (slice.round == cx.round, self.grouping.meeting.reach(cx));
        if current && let Some(fragment) = self.fragments.get(slice.fragment) {
            // Names are the same in every attempt at a round; the tag tells their groups apart.
            if fragment.scope.group.tag == group && !fragment.over() {
                let result = fragment.arrived(cx, arrived);
                if result.is_err() {
                    cx.release(slice);
                }
                return result;
            }
        } else if slice.round >= cx.round && slice.round.since(reach) <= ROUNDS_AHEAD_MAX {
            // The sender is in another attempt at the round: these bytes have replaced the earlier ones.
            let most = early_slices_max(&cx.plan);
            return self.early.keep_slice(cx, arrived, most).map(|_| ());
        }
        let fragment = self.fragments.get(slice.fragment);
        let known = fragment.is_some_and(|fragment| fragment.holds(&slice));
        if !known && !self.history.keeps(&slice) {
            cx.release(slice);
        }
        Ok(())
    }

    /// A message for one fragment's round.
    pub(super) fn deliver(&mut self, cx: &mut Context, from: PeerId, message: &Scoped) -> Checked {
        let (round, fragment) = (message.round, message.fragment);
        // Its sender is behind: the decision tells it all that it lacks.
        if round < cx.round {
            self.history.tell(cx, from, message);
            return Ok(());
        }
        if !cx.plan.overlap.exchanges(round, fragment) {
            return broke("a message of a fragment whose round it is not");
        }
        let elsewhere = match &self.group {
            Some(group) => group.tag != message.group,
            None => self.grouping.active(),
        };
        let is_proof = signs(cx) && message.body.ends();
        // The group that decided may have left this peer out, or be one that this peer has left.
        if is_proof && elsewhere && round == cx.round {
            return self.shown(cx, from, message);
        }
        let open = self.fragments.get(fragment);
        let Some(open) = open.filter(|open| open.scope.round == round) else {
            let ahead = round.since(self.grouping.meeting.reach(cx));
            if ahead <= ROUNDS_AHEAD_MAX {
                self.early.keep_message(from, message);
            }
            return Ok(());
        };
        // It is of an attempt that one of the two has left.
        if open.scope.group.tag != message.group {
            return Ok(());
        }
        forbid(
            !open.has(from),
            "a message of a group from a peer outside it",
        )?;
        // A peer that speaks in a group has joined it; its word of that may have been lost.
        self.grouping.joined.note(from, round, message.group);
        self.vote_once_joined(cx);
        match self.fragments.get(fragment) {
            Some(open) => open.hear(cx, from, &message.body),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_steps_of_void_rounds_count_with_those_of_the_next() {
        let summary = |steps| TrainSummary {
            steps,
            samples: 8 * steps,
            ..TrainSummary::default()
        };
        let mut carried = Carried::default();
        assert_eq!(carried.weigh(Weighing::Steps, &summary(3)), 3.0);
        carried.ended(true);
        assert_eq!(carried.weigh(Weighing::Steps, &summary(4)), 7.0);
        assert_eq!(carried.weigh(Weighing::Samples, &summary(4)), 32.0);
        assert_eq!(carried.weigh(Weighing::Equal, &summary(4)), 1.0);
        assert_eq!(carried.weigh(Weighing::Equal, &summary(0)), 0.0);
        carried.ended(false);
        assert_eq!(carried.weigh(Weighing::Steps, &summary(5)), 5.0);
        carried.ended(false);
        assert_eq!(carried.weigh(Weighing::Equal, &summary(0)), 0.0);
    }
}
