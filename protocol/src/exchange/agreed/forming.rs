//! What follows from forming a group: the round begins, or continues without this peer. For a
//! moment peers may have different groups of one round; here they return to one.

use super::Agreed;
use super::decision::proven;
use super::electorate::{is_away, signs, tolerance};
use super::fragment::FragmentRound;
use super::group::{Formed, Group};
use super::grouping::Ready;
use super::member::Surroundings;
use super::message::{FormingMessage, Proposal, Proposed, Scoped};
use super::rule::Ledger;
use super::signed_message::Seat;
use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{Arrived, Outcome, broke};
use crate::{Base, Checked, Ending, Event, GroupTag, Members, PeerId, Round};

impl Agreed {
    pub(super) fn formed(&mut self, cx: &mut Context, formed: Formed) {
        match formed {
            Formed::Waiting => {}
            Formed::Group(group) => self.start(cx, *group),
            Formed::Outcome(outcome) => {
                self.outcome = Some(outcome);
            }
            // Members that sign end a round only with a proof that others can check.
            Formed::NoGroup if !signs(cx) => {
                self.grouping.end(cx);
                self.alone = Some(Outcome::Ended);
                self.go_alone(cx);
            }
            Formed::NoGroup | Formed::Alone => {
                self.grouping.alone(cx);
                self.alone = Some(Outcome::Alone);
                self.go_alone(cx);
            }
        }
    }

    /// Ends the round without a group once every fragment has left the training: all are void.
    pub(super) fn go_alone(&mut self, cx: &Context) {
        if self.all_cut(cx)
            && let Some(outcome) = self.alone.take()
        {
            self.no_group = true;
            self.outcome = Some(outcome);
        }
    }

    /// The group is known: what came early for another one goes, and the first fragments open.
    pub(super) fn start(&mut self, cx: &mut Context, group: Group) {
        let members: Vec<PeerId> = group.members.iter().map(|m| m.peer).collect();
        if let Some(links) = &group.around.links {
            cx.view.measured.hold(&members, links);
        }
        cx.emit(Event::Group {
            round: cx.round,
            members,
        });
        if let Some(change) = self.programs.change(&cx.plan, &group, cx.round) {
            cx.emit(change);
        }
        let (round, tag) = (cx.round, group.tag);
        let belongs = |r: Round, of: Option<GroupTag>| r > round || (r == round && of == Some(tag));
        let due = |early: &Arrived| belongs(early.slice.round, early.meta.tag.group());
        self.early.retain_slices(cx, due, |_| false);
        self.early
            .retain_messages(|m| belongs(m.round, Some(m.group)));
        // The link of a member may have gone down before the proposal arrived.
        let linked = |peer: PeerId| cx.view.get(peer).is_some_and(|remote| remote.linked);
        let gone = group.others().filter(|(_, peer)| !linked(*peer));
        self.fragments.lost = gone.map(|(index, _)| index).collect();
        // Those that declined an earlier group of the round may be in this one.
        self.declined = Members::NONE;
        if group.sealed.is_some() {
            for peer in group.other_peers() {
                let group = group.tag;
                cx.send(peer, FormingMessage::Joined { round, group });
            }
        }
        self.group = Some(group);
        self.settle(cx);
        // Others may have said that they joined before the proposal came.
        self.vote_once_joined(cx);
    }

    /// Enough have joined this peer's group for a decision.
    pub(super) fn has_joined(&self, cx: &Context) -> bool {
        let group = self.group.as_ref();
        group.is_some_and(|group| self.grouping.joined.enough(group, cx.round))
    }

    pub(super) fn vote_once_joined(&mut self, cx: &mut Context) {
        if !self.has_joined(cx) {
            return;
        }
        for fragment in &mut self.fragments.all {
            // Only the first time, or each word of joining would go through all fragments.
            if fragment.may_sign() {
                fragment.advance(cx);
            }
        }
    }

    /// A deadline has passed and no quorum has joined the group: it is given up.
    pub(super) fn leave_unless_joined(&mut self, cx: &mut Context) {
        let sealed = self.group.as_ref().is_some_and(|g| g.sealed.is_some());
        let overdue = |b: &FragmentRound| !b.over() && b.due() <= cx.now;
        // Without a quorum this peer has signed nothing in it, so leaving it costs nothing.
        if sealed && !self.has_joined(cx) && self.fragments.all.iter().any(overdue) {
            self.leave_group(cx);
        }
    }

    /// Forgets the fragments of a group. The members that had joined it may be gone by now, with a result that this
    /// peer has signed for: it says so in its next group of the round.
    pub(super) fn release(&mut self, cx: &mut Context) {
        let ledgers = || self.fragments.all.iter().filter_map(FragmentRound::ledger);
        let (count, last) = &mut self.grouping.left_signed;
        *count += u64::from(ledgers().any(Ledger::has_signed));
        if ledgers().any(Ledger::is_bound) {
            *last = Some(cx.round);
        }
        self.fragments.release(cx);
    }

    /// Gives up a group, and tries the round again.
    fn leave_group(&mut self, cx: &mut Context) {
        self.release(cx);
        cx.timers.stop(Timer::Exchange);
        if let Some(left) = self.group.take() {
            let (round, group, ready) = (cx.round, left.tag, false);
            let left_by = FormingMessage::Left {
                round,
                group,
                ready,
            };
            for peer in left.other_peers() {
                cx.send(peer, left_by.clone());
            }
            self.grouping.left.insert(group);
        }
        self.formed(cx, Formed::Alone);
    }

    /// No ballot is left: tries the round again, or takes it over where a part is applied.
    pub(super) fn try_again(&mut self, cx: &mut Context) {
        let other = self.group.as_ref();
        let other = other.and_then(|group| group.other_peers().next());
        // A part that is applied cannot be taken back, and a new group would begin without it.
        match other.filter(|_| self.begun()) {
            Some(teller) => {
                cx.timers.stop(Timer::Exchange);
                let resync = true;
                self.outcome = Some(Outcome::Behind { teller, resync });
            }
            None => self.formed(cx, Formed::Alone),
        }
    }

    /// A peer is ready for a round that has its group here, or is over. Its message may have been
    /// overtaken, on another link, by the proposal that follows from it: a member is not late.
    pub(super) fn late(&mut self, cx: &mut Context, from: PeerId, ready: Ready) {
        let (round, anchor) = (ready.round, ready.anchor);
        if round == cx.round {
            self.grouping.note_ready(cx, from);
            // Its new attempt says that it takes no part in this group any more.
            self.has_left(cx, from, ready.seat);
            self.rivalled(cx, from);
        }
        // A member too may have left its group before it heard of the decision.
        let fragments = cx.plan.fragments_of(round).count();
        if let Some(proof) = self.history.proof(round, fragments) {
            cx.send(from, proof.clone());
            return;
        }
        // It has been in a group since, so it knows; its word was under way before that.
        let grouped = cx.view.get(from).and_then(|remote| remote.grouped);
        if grouped.is_some_and(|last| last >= round) {
            return;
        }
        // Past rounds can be replayed only on the parameters that they began with.
        let began = cx.view.split.began_with(round);
        let resync = began.is_some_and(|began| !cx.starts_from(began, round, anchor));
        let round = cx.round.max(round.next());
        cx.send(from, FormingMessage::Behind { round, resync });
    }

    /// A peer shows that this peer's round was decided by a group that this peer is not in.
    pub(super) fn shown(&mut self, cx: &mut Context, from: PeerId, decision: &Scoped) -> Checked {
        let Some(proven) = proven(cx, decision) else {
            return broke("a decision without its proof");
        };
        if self.outcome.is_none() && tolerance(cx).believes(proven.signers) {
            // Fragments that are applied already stay.
            let resync = proven.anchor != cx.anchor.before(cx.round);
            self.grouping.end(cx);
            cx.timers.stop(Timer::Exchange);
            self.outcome = Some(Outcome::Behind {
                teller: from,
                resync,
            });
        }
        Ok(())
    }

    /// This peer has applied its round in part: it cannot be replayed from its beginning.
    fn begun(&self) -> bool {
        let begun =
            |b: &FragmentRound| matches!(b.ending, Some(Ending::Apply(_) | Ending::Gather(_)));
        self.fragments.all.iter().any(begun)
    }

    pub(super) fn proposed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        proposed: &Proposed,
        around: &Surroundings,
    ) -> Checked {
        let round = proposed.round;
        if let Some(group) = self.group.as_ref().filter(|_| round == cx.round) {
            if group.is(round, &proposed.members, around) {
                return Ok(()); // two proposers, one group
            }
            if group.index(from).is_none() {
                let (round, resync) = (round.next(), false);
                cx.send(from, FormingMessage::Behind { round, resync });
                return Ok(());
            }
        }
        let (formed, result) = match self.grouping.proposed(cx, from, proposed, around) {
            Ok(formed) => (formed, Ok(())),
            Err(error) => (self.grouping.refused(cx, from), Err(error)),
        };
        self.formed(cx, formed);
        result
    }

    /// A group is proposed with the statements of its members.
    pub(super) fn proposed_signed(&mut self, cx: &mut Context, from: PeerId, proposal: &Proposal) {
        if let Some(group) = self.group.as_ref().filter(|_| proposal.round == cx.round) {
            let other = proposal
                .group(cx)
                .is_none_or(|other| other.tag != group.tag);
            match group.index(from) {
                _ if !other => {}
                Some(_) => {
                    self.grouping.turns.refuse(cx, from);
                    proposal.decline(cx, false);
                }
                None => {
                    let (round, resync) = (proposal.round.next(), false);
                    cx.send(from, FormingMessage::Behind { round, resync });
                }
            }
            return;
        }
        let formed = self.grouping.proposed_signed(cx, from, proposal);
        self.formed(cx, formed);
    }

    /// A peer waits outside this peer's group. The group may need a liar for its quorum, and one with that peer need
    /// not, so the first attempts at a round end once each member has coordinated in vain: not where the round has
    /// several fragments, because one that is applied cannot be taken back.
    fn rivalled(&mut self, cx: &Context, peer: PeerId) {
        let inside = |group: &Group| group.index(peer).is_some_and(|at| !self.declined.has(at));
        let whole = cx.plan.fragments_of(cx.round).count() == 1;
        let early = |group: &Group| whole && self.grouping.attempts < group.len() as u64;
        let group = self.group.as_ref().filter(|group| early(group));
        if group.is_some_and(|group| !inside(group)) && !is_away(cx, peer) {
            let rounds = self.fragments.all.iter_mut();
            let signed = rounds.filter_map(|round| round.agreement.signed.as_mut());
            signed.for_each(|signed| signed.hurry());
        }
    }

    /// A member is ready for another attempt at the round: its signatures there are of another life.
    fn has_left(&mut self, cx: &mut Context, from: PeerId, seat: Option<Seat>) {
        let sealed = self.group.as_ref().and_then(|group| {
            let words = &group.sealed.as_ref()?.words;
            let seat = words.members.iter().find(|seat| seat.peer == from)?;
            Some((group.tag, seat.life))
        });
        if let (Some((tag, life)), Some(seat)) = (sealed, seat)
            && !seat.is_before(life)
        {
            self.left_by(cx, from, tag);
        }
    }

    /// A member is not in the group. If too few are left, the round is tried again. A peer that has
    /// signed in this group says so in the next, which makes sure that this one decided nothing.
    pub(super) fn left_by(&mut self, cx: &mut Context, from: PeerId, tag: GroupTag) {
        // It may speak of a group that this peer has left as well.
        let group = self.group.as_ref().filter(|group| group.tag == tag);
        let Some(group) = group else {
            return;
        };
        let Some(index) = group.index(from) else {
            return;
        };
        self.declined |= Members::one(index);
        let left = group.len() - self.declined.count();
        let fragments = &self.fragments.all;
        let decided = |b: &FragmentRound| b.over() || b.agreement.decided.is_some();
        if self.outcome.is_some() {
            return;
        }
        // The others are enough, so the fragments go on without it.
        if group.decides(left) {
            // It brings nothing to this group.
            self.fragments.lost |= Members::one(index);
            self.fragments.share_losses(cx);
            return;
        }
        // Those that lie may say that they have left, and sign on in this group.
        let may_decide = group.may_decide(left);
        match fragments
            .iter()
            .any(|b| b.over() || b.ledger().is_some_and(Ledger::has_signed))
        {
            true if may_decide || fragments.iter().all(decided) => {}
            true => self.try_again(cx),
            false => self.leave_group(cx),
        }
    }

    /// A peer says that the round continues without this one. Once this one has a group, only as
    /// many of its members as leave no majority make it give up.
    pub(super) fn passed_by(&mut self, cx: &mut Context, teller: PeerId, resync: bool) {
        if self.grouping.active() || self.grouping.meeting.active() {
            let Some(resync) = self.tellers.believed(cx, teller, resync) else {
                return;
            };
            self.grouping.end(cx);
            self.grouping.meeting.end(cx);
            self.outcome = Some(Outcome::Behind { teller, resync });
            return;
        }
        let Some(group) = &self.group else { return };
        let Some(index) = group.index(teller) else {
            return;
        };
        self.elsewhere |= Members::one(index);
        let left = group.len() - self.elsewhere.count();
        // Enough members are left: the round does continue here, whatever others say.
        if group.decides(left) || self.outcome.is_some() {
            self.gone(cx, teller);
            return;
        }
        let resync = resync || self.begun();
        cx.timers.stop(Timer::Exchange);
        self.outcome = Some(Outcome::Behind { teller, resync });
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

    /// Gives up forming an ordinary group when branches are to be merged first.
    pub(super) fn stop_forming(&mut self, cx: &mut Context) {
        // Members of this side may have stopped for the merge already, and would be missing.
        if self.grouping.active() && self.grouping.meeting.due(cx) {
            self.formed(cx, Formed::Alone);
        }
    }
}

/// What follows from a meeting of branches: they are merged in a round, or each goes on.
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
                let meeting = &mut self.grouping.meeting;
                let formed = meeting.proposed(cx, from, (*round, *term), sides);
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
