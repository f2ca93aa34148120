//! Forming a group whose members sign what they say of themselves: a proposal carries the statements
//! of all members, and every member checks that it may be proposed.

use super::electorate::{electorate, is_away, may_propose};
use super::group::Group;
use super::grouping::{Formed, Grouping};
use super::message::{FormingMessage, Member};
use super::signed_message::Seat;
use super::weights;
use crate::core::context::Context;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::rendezvous::rendezvous;
use crate::wire::canonical;
use crate::{Digest, PeerId, Round, RunId, Signature};

/// A proposal of a group whose members sign.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) round: Round,
    pub(super) term: u8,
    /// Peers that take part in rounds, absent ones included.
    pub(super) seats: u16,
    pub(super) anchor: Digest,
    pub(super) members: Vec<Seat>,
}

/// Names a group whose members sign, by its round, its seats, its anchor and its members.
pub fn group_digest(
    run: &RunId,
    round: Round,
    seats: u16,
    (anchor, members): (Digest, &[Seat]),
) -> Digest {
    let of = |seat: &Seat| (seat.peer, seat.weight, seat.life);
    let members: Vec<(PeerId, f64, u64)> = members.iter().map(of).collect();
    let all = ("murmurate group", run, round, seats, anchor, members);
    Digest::of(&canonical(&all))
}

impl Proposal {
    /// The group that it proposes; `None` if this peer is not in it.
    pub(super) fn group(&self, cx: &Context) -> Option<Group> {
        let plain = self.members.iter().map(|seat| Member {
            peer: seat.peer,
            weight: seat.weight,
        });
        let mut plain: Vec<Member> = plain.collect();
        // Members sign what they claim; how much counts follows from all claims.
        weights::cap(&mut plain);
        let group = Group::new(&cx.plan, self.round, plain, cx.me())?;
        Some(group.signed(&cx.plan, usize::from(self.seats), self.digest(&cx.plan.run)))
    }

    /// Names the group: everything but who proposes it, so that two proposers have one group.
    fn digest(&self, run: &RunId) -> Digest {
        group_digest(run, self.round, self.seats, (self.anchor, &self.members))
    }

    /// Whether members that may have signed in this round before, and have forgotten what, are
    /// harmless here: there are none, or a quorum of them, without which no group can have decided.
    fn forgets_harmlessly(&self, cx: &Context) -> bool {
        let forget = self.members.iter().filter(|seat| seat.forgets).count();
        forget == 0 || forget >= cx.plan.quorum_of(usize::from(self.seats))
    }

    fn message(&self) -> FormingMessage {
        FormingMessage::SignedPropose {
            round: self.round,
            term: self.term,
            seats: self.seats,
            anchor: self.anchor,
            members: self.members.clone(),
        }
    }
}

impl Grouping {
    /// What this peer says of itself.
    pub(super) fn own_seat(&self, cx: &Context) -> Seat {
        let left = self.left_signed(cx.round);
        Seat {
            peer: cx.me(),
            weight: self.weight,
            life: cx.session.wrapping_add(left.unwrap_or(0)),
            forgets: left.is_some(),
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
        let seats = self.seats(cx).max(members.len());
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
            cx.send(peer, proposal.message());
        }
        self.form(cx, group, false)
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
        if self.active() && self.accepts(cx, from, proposal) {
            return match proposal.group(cx) {
                Some(group) => self.form(cx, group, false),
                None => Formed::Waiting,
            };
        }
        let term = proposal.term;
        cx.send(from, FormingMessage::Decline { round, term });
        Formed::Waiting
    }

    /// Whether a proposal is one that this peer may join.
    fn accepts(&self, cx: &Context, from: PeerId, proposal: &Proposal) -> bool {
        let members = &proposal.members;
        let own = self.own_seat(cx);
        // Its signature is checked, so this peer said it, perhaps in an earlier attempt.
        let as_i_said = |seat: &Seat| (seat.peer, seat.life) == (own.peer, own.life);
        let seats = usize::from(proposal.seats);
        members.iter().any(|seat| seat.peer == from)
            && !is_away(cx, from)
            && members.iter().any(as_i_said)
            && proposal.anchor == cx.anchor()
            // Fewer seats than there are would be a smaller quorum.
            && seats >= self.seats(cx).max(members.len())
            && members.len() >= cx.plan.quorum_of(seats)
            && proposal.forgets_harmlessly(cx)
            && self.is_due(cx, from, proposal)
    }

    /// Whether it is the sender's turn to propose: of the members that come before it, one was tried
    /// in each term before.
    fn is_due(&self, cx: &Context, from: PeerId, proposal: &Proposal) -> bool {
        let rank = |peer: PeerId| (rendezvous(&cx.plan.run, cx.round, 0, peer), peer);
        let before = proposal.members.iter().filter(|seat| {
            let ready = seat.peer == cx.me() || self.is_ready(cx, seat.peer);
            rank(seat.peer) > rank(from) && ready && may_propose(cx, seat.peer)
        });
        before.count() <= usize::from(proposal.term)
    }

    /// Whether a peer has said that it is ready for this round.
    fn is_ready(&self, cx: &Context, peer: PeerId) -> bool {
        let ready = self.ready.get(&peer);
        ready.is_some_and(|ready| ready.round == cx.round)
    }

    /// Peers that take part in rounds.
    fn seats(&self, cx: &Context) -> usize {
        electorate(cx, self.attempts).min(GROUP_MEMBERS_MAX)
    }
}
