//! What arrives for a round's exchange: slices and messages, early, in time or late.

use super::Agreed;
use super::electorate::signs;
use super::grouping::Ready;
use super::member::Said;
use super::message::{AgreedMessage, FormingMessage, Scoped};
use super::scope::EXCHANGE;
use crate::core::context::Context;
use crate::exchange::{Arrived, ExchangeMessage, broke, foreign_message, foreign_tag};
use crate::limits::{EARLY_SCHEDULED_MAX, EARLY_SLICES_MAX, ROUNDS_AHEAD_MAX};
use crate::{Order, PeerError, PeerId, Plan};

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
    ) -> Result<(), PeerError> {
        let forming = match message {
            ExchangeMessage::Agreed(AgreedMessage::Forming(forming)) => forming,
            ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) => {
                return self.deliver(cx, from, scoped);
            }
            other => return Err(foreign_message(other, EXCHANGE)),
        };
        // The plan says which messages form groups, so an honest peer sends no others.
        if !forming.fits(&cx.plan) {
            return broke("a group of another kind: its members sign, or ours do");
        }
        if !forming.weighs(cx.plan.agreement.weighing) {
            return broke("a weight that is no count");
        }
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

    pub(super) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Result<(), PeerError> {
        let Arrived { slice, meta, .. } = arrived;
        if !cx.plan.overlap.exchanges(slice.round, slice.fragment) {
            cx.order(Order::Release { slice });
            return broke("a slice of a fragment whose round it is not");
        }
        let Some(group) = meta.tag.group() else {
            cx.order(Order::Release { slice });
            return Err(foreign_tag(meta.tag, EXCHANGE));
        };
        // A merge is in the round after the furthest side's, which may be far ahead of this peer.
        let (current, reach) = (slice.round == cx.round, self.grouping.meeting.reach(cx));
        if current && let Some(fragment) = self.fragments.get(slice.fragment) {
            // Names are the same in every attempt at a round; the tag tells their groups apart.
            if fragment.scope.group.tag == group && !fragment.over() {
                let result = fragment.arrived(cx, arrived);
                if result.is_err() {
                    cx.order(Order::Release { slice });
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
            cx.order(Order::Release { slice });
        }
        Ok(())
    }

    /// A message for one fragment's round.
    pub(super) fn deliver(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
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
        if !open.has(from) {
            return broke("a message of a group from a peer outside it");
        }
        // A peer that speaks in a group has joined it; its word of that may have been lost.
        self.grouping.joined.note(from, round, message.group);
        self.vote_once_joined(cx);
        match self.fragments.get(fragment) {
            Some(open) => open.hear(cx, from, &message.body),
            None => Ok(()),
        }
    }
}
