//! Forming a group whose members sign what they say of themselves: a proposal carries the statements
//! of all members, and every member checks that it may be proposed.

use super::electorate::{can_propose, is_away, seats};
use super::group::{Formed, Group};
use super::grouping::Grouping;
use super::message::{FormingMessage, Proposal};
use super::signed_message::{Seat, SignedGroup};
use crate::core::context::Context;
use crate::id::rendezvous;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::{GroupTag, PeerId, Signature};

impl Proposal {
    /// The group that it proposes; `None` if this peer is not in it.
    pub(super) fn group(&self, cx: &Context) -> Option<Group> {
        // Everything but who proposes it, so that two proposers have one group.
        let words = SignedGroup::new(self.seats, self.anchor, &self.members);
        let group = Group::new(&cx.plan, self.round, words.weighted(), cx.me())?;
        Some(group.signed(&cx.plan, words))
    }

    /// Members that may have voted in this round before are harmless here: without those that have not, the
    /// others were no quorum; or all that have seats are here, so that none has a result of the round. A seat
    /// that is not here may have one, so the round waits for it as long as for a member that may be gone for good.
    fn forgets_harmlessly(&self, cx: &Context) -> bool {
        let seats = usize::from(self.seats).max(seats_with(cx, &self.members));
        let (quorum, tolerance) = (cx.plan.quorum_of(seats), cx.plan.tolerance(seats));
        let forget = self.members.iter().filter(|seat| seat.forgets).count();
        let remember = self.members.len() - forget;
        // Of those that remember, some may lie about it.
        let others_decide = tolerance.may_be(quorum, seats - remember);
        let all = self.members.len() >= seats || cx.view.seats.stand_still(cx.now);
        forget == 0 || !others_decide || all
    }

    /// Tells all members that this peer is not in the group: too few may be left to decide anything.
    pub(super) fn decline(&self, cx: &mut Context, ready: bool) {
        let round = self.round;
        let words = SignedGroup::new(self.seats, self.anchor, &self.members);
        let group = GroupTag::of_digest(&words.digest(&cx.plan.run, round));
        let me = cx.me();
        let others = self.members.iter().map(|seat| seat.peer);
        for peer in others.filter(|peer| *peer != me) {
            let left = FormingMessage::Left {
                round,
                group,
                ready,
            };
            cx.send(peer, left);
        }
    }
}

impl Grouping {
    /// This peer's statement about itself.
    pub(super) fn own_seat(&self, cx: &Context) -> Seat {
        Seat {
            peer: cx.me(),
            weight: self.weight,
            // What it trains in another attempt has the same names, so it is of another group. So is what it signs
            // after it has left one.
            life: cx
                .this_life
                .session
                .wrapping_add(self.left_signed.0 << 32)
                .wrapping_add(self.attempts),
            forgets: self.left_signed.1 == Some(cx.round),
            signature: Signature::BLANK,
        }
    }

    /// Proposes these peers, which share an anchor.
    pub(super) fn propose_signed(
        &mut self,
        cx: &mut Context,
        term: u8,
        mut members: Vec<Seat>,
    ) -> Formed {
        members.truncate(GROUP_MEMBERS_MAX);
        let seats = seats_with(cx, &members);
        // Others may not have heard who was tried in earlier attempts, because they trained.
        let term = term.max(self.turns.over.len() as u8);
        // A peer that has forgotten what it signed waits for the next round, unless too few have not
        // forgotten.
        let remember = members.iter().filter(|seat| !seat.forgets).count();
        if remember >= cx.plan.quorum_of(seats) {
            members.retain(|seat| !seat.forgets);
        }
        let proposal = Proposal {
            round: cx.round,
            term,
            seats: seats as u16,
            anchor: cx.anchor(),
            members,
        };
        if proposal.members.len() < cx.plan.quorum_of(seats) || !proposal.forgets_harmlessly(cx) {
            return Formed::NoGroup;
        }
        let Some(group) = proposal.group(cx) else {
            return Formed::NoGroup;
        };
        for (_, peer) in group.others() {
            cx.send(peer, FormingMessage::SignedPropose(proposal.clone()));
        }
        self.form(cx, group)
    }

    /// Somebody proposes a group with the statements of its members.
    pub(super) fn proposed_signed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        proposal: &Proposal,
    ) -> Formed {
        let round = proposal.round;
        if round != cx.round {
            return Formed::Waiting;
        }
        let due = self.is_due(cx, from, proposal);
        if self.active() && due && self.accepts(cx, from, proposal) {
            let group = proposal.group(cx);
            if let Some(group) = group.filter(|group| !self.left.contains(&group.tag)) {
                self.proposer = Some(from);
                return self.form(cx, group);
            }
        }
        if self.active() && due {
            self.turns.refuse(cx, from);
        }
        proposal.decline(cx, self.active());
        Formed::Waiting
    }

    fn accepts(&self, cx: &Context, from: PeerId, proposal: &Proposal) -> bool {
        let members = &proposal.members;
        let own = self.own_seat(cx);
        // Its signature is checked, so this peer said it, perhaps in an earlier attempt.
        let earlier = |seat: &Seat| own.life.wrapping_sub(seat.life) <= self.attempts;
        let as_i_said = |seat: &Seat| seat.peer == own.peer && earlier(seat);
        let seats = usize::from(proposal.seats);
        members.iter().any(|seat| seat.peer == from)
            && !is_away(cx, from)
            && members.iter().any(as_i_said)
            && proposal.anchor == cx.anchor()
            && self.ready.get(&from).is_none_or(|ready| ready.round != cx.round || ready.anchor == cx.start())
            // Fewer seats than there are may be a smaller quorum, and more may be one that nothing reaches.
            && seats >= members.len()
            && cx.plan.quorum_of(seats) >= cx.plan.quorum_of(seats_with(cx, members))
            && seats <= most_seats(cx, members)
            && members.len() >= cx.plan.quorum_of(seats)
            && proposal.forgets_harmlessly(cx)
    }

    /// It is the sender's turn: of those that come before it, one was tried in each term.
    fn is_due(&self, cx: &Context, from: PeerId, proposal: &Proposal) -> bool {
        let rank = |peer: PeerId| (rendezvous(&cx.plan.run, cx.round, 0, peer), peer);
        let before = proposal.members.iter().filter(|seat| {
            let ready = seat.peer == cx.me() || self.is_ready(cx, seat.peer);
            rank(seat.peer) > rank(from)
                && ready
                && !self.turns.is_over(seat.peer)
                && self.may_propose(cx, seat.peer)
                && can_propose(cx, seat.peer)
        });
        before.count() <= usize::from(proposal.term)
    }

    pub(super) fn is_ready(&self, cx: &Context, peer: PeerId) -> bool {
        let ready = self.ready.get(&peer);
        ready.is_some_and(|ready| ready.round == cx.round)
    }
}

fn seats_with(cx: &Context, members: &[Seat]) -> usize {
    let count = seats(cx, members.iter().map(|seat| seat.peer));
    count.max(members.len()).min(GROUP_MEMBERS_MAX)
}

/// The most seats of a group of these members that another one may count, which knows other links and results,
/// and has not cut off the same members.
fn most_seats(cx: &Context, members: &[Seat]) -> usize {
    let known = cx.view.iter().map(|(peer, _)| peer);
    let count = seats(cx, members.iter().map(|seat| seat.peer).chain(known));
    count.max(members.len()).min(GROUP_MEMBERS_MAX)
}
