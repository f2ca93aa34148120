//! What follows from a meeting of branches: they are merged in a round, or each goes on.

use super::Agreed;
use super::formed::Formed;
use super::message::FormingMessage;
use super::sides::Head;
use crate::core::context::Context;
use crate::exchange::{Ending, Outcome};
use crate::{Base, Event, PeerId};

impl Agreed {
    /// Stops for a merge.
    pub(super) fn meet_branches(&mut self, cx: &mut Context) {
        self.outcome = None;
        self.no_group = false;
        self.alone = None;
        let formed = self.grouping.meeting.begin(cx);
        self.brought_together(cx, formed);
    }

    /// A meeting goes on, or has ended in this way.
    pub(super) fn brought_together(&mut self, cx: &mut Context, formed: Formed) {
        match formed {
            Formed::Waiting => {}
            Formed::Group(group) => {
                cx.this_life.newcomer = false;
                for (_, peer) in group.others() {
                    if let Some(remote) = cx.view.get_mut(peer) {
                        remote.settle();
                        remote.grouped = Some(cx.round);
                    }
                }
                self.start(cx, *group);
            }
            Formed::Outcome(outcome) => self.outcome = Some(outcome),
            Formed::NoGroup | Formed::Alone => {
                self.grouping.meeting.end(cx, true);
                self.not_merged(cx);
                self.outcome = Some(Outcome::Alone);
            }
        }
    }

    /// A peer is gone while a group is formed, of an ordinary round or of a merge.
    pub(super) fn gone_from_forming(&mut self, cx: &mut Context, peer: PeerId) {
        let formed = self.grouping.meeting.gone(cx, peer);
        self.brought_together(cx, formed);
        let formed = self.grouping.gone(cx, peer);
        self.formed(cx, formed);
    }

    /// A deadline of the forming of a group has passed.
    pub(super) fn forming_timeout(&mut self, cx: &mut Context) {
        if self.grouping.active() {
            let formed = self.grouping.timeout(cx);
            self.formed(cx, formed);
        } else if self.grouping.meeting.active() {
            let formed = self.grouping.meeting.timeout(cx);
            self.brought_together(cx, formed);
        }
    }

    fn not_merged(&mut self, cx: &mut Context) {
        let round = cx.round;
        cx.view.split.failed(round);
        let given_up = cx.view.split.mergeable().is_none();
        cx.emit(Event::NotMerged { round, given_up });
        cx.sort_sides();
    }

    /// A message about a merge, or one of another branch that means nothing in this one: none of the
    /// latter is left.
    pub(super) fn about_a_merge(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &FormingMessage,
    ) -> bool {
        match message {
            FormingMessage::Meet {
                round,
                anchor,
                branch,
            } => {
                let head = Head {
                    round: *round,
                    anchor: *anchor,
                    branch: **branch,
                };
                let formed = self.grouping.meeting.met(cx, from, head);
                self.brought_together(cx, formed);
                self.stop_forming(cx);
                true
            }
            FormingMessage::Merge { round, term, sides } => {
                let formed = self
                    .grouping
                    .meeting
                    .proposed(cx, from, (*round, *term), sides);
                self.brought_together(cx, formed);
                true
            }
            FormingMessage::Decline { .. } => false,
            FormingMessage::Ready { round, .. } => {
                // It goes on with rounds of its branch.
                if *round >= cx.round || cx.view.is_apart(from) {
                    let formed = self.grouping.meeting.goes_on(cx, from);
                    self.brought_together(cx, formed);
                }
                cx.view.is_apart(from)
            }
            _ => cx.view.is_apart(from),
        }
    }

    /// Gives up forming an ordinary group when branches are to be merged first.
    pub(super) fn stop_forming(&mut self, cx: &mut Context) {
        if self.grouping.active() && self.grouping.meeting.due(cx) {
            self.formed(cx, Formed::Alone);
        }
    }

    /// A round has ended. If it was to merge branches: whether it has.
    pub(super) fn end_merge(&mut self, cx: &mut Context) {
        self.grouping.meeting.end(cx, false);
        let Some(group) = self.group.as_ref().filter(|group| group.merges()) else {
            return;
        };
        let merged =
            |b: &super::FragmentRound| b.told && matches!(b.ending, Some(Ending::Merge(_)));
        let whole = self.fragment_rounds.len() == cx.plan.fragments.len();
        if !(whole && self.fragment_rounds.iter().all(merged)) {
            self.grouping.meeting.forget();
            self.not_merged(cx);
            return;
        }
        let members = group.members.iter().map(|member| member.peer).collect();
        let (sides, round, digest) = (group.sides.clone(), cx.round, cx.anchor());
        let weight = sides.iter().map(|(_, weight)| weight).sum();
        let base = Base {
            round: round.next(),
            anchor: digest,
        };
        cx.view.split.merged(base, &members, weight);
        cx.sort_sides();
        self.grouping.meeting.forget();
        cx.emit(Event::Merged {
            round,
            digest,
            sides,
        });
    }
}
