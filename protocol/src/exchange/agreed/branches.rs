//! What follows from a meeting of branches: they are merged in a round, or each goes on.

use super::Agreed;
use super::fragment::FragmentRound;
use super::group::Formed;
use super::message::FormingMessage;
use crate::core::context::Context;
use crate::exchange::Outcome;
use crate::{Base, Ending, Event, PeerId};

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
                group.note(cx);
                self.start(cx, *group);
            }
            Formed::Outcome(outcome) => self.outcome = Some(outcome),
            Formed::NoGroup | Formed::Alone => {
                self.grouping.meeting.end(cx);
                self.not_merged(cx);
                self.outcome = Some(Outcome::Alone);
            }
        }
    }

    /// A message about a merge, or one of another branch; true where nothing of it is left to do.
    pub(super) fn about_a_merge(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &FormingMessage,
    ) -> bool {
        match message {
            FormingMessage::Meet(head) => {
                let formed = self.grouping.meeting.met(cx, from, **head);
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
            FormingMessage::Ready { round, anchor, .. } => {
                let same = cx.anchor();
                if cx.view.is_apart(from)
                    && cx.starts_from(same, *round, *anchor)
                    && let Some(remote) = cx.view.get_mut(from)
                {
                    remote.anchor = Some(same);
                    cx.sort_sides();
                }
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

    fn not_merged(&mut self, cx: &mut Context) {
        let round = cx.round;
        cx.view.split.failed(round);
        let given_up = cx.view.split.mergeable().is_none();
        cx.emit(Event::NotMerged { round, given_up });
        cx.sort_sides();
    }

    /// A round has ended: one that was to merge branches has merged them, or is tried again.
    pub(super) fn end_merge(&mut self, cx: &mut Context) {
        self.grouping.meeting.end(cx);
        let Some(group) = self.group.as_ref().filter(|group| !group.follows_plan()) else {
            return;
        };
        let merged = |f: &FragmentRound| f.told && matches!(f.ending, Some(Ending::Merge(_)));
        let fragments = &self.fragments.all;
        let whole = fragments.len() == cx.plan.fragments.len();
        // Branches are one again only if all fragments are; a part of them would be a third state.
        if !(whole && fragments.iter().all(merged)) {
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
