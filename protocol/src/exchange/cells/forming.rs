//! Who is in a round's cell: the peers that the roll deals into it and that have trained in time.
//!
//! Every peer tells the others of its cell that it is ready. One of them, the first by a hash over the
//! round among those that are there, waits for all and says who is a member. Peers that know different
//! rolls differ in whom they tell and in whom they wait for. So a peer with another roll is left out, and
//! the others form their cell without it, after one deadline at most.

use crate::core::context::Context;
use crate::limits::{CELL_FORMING_WAITS_MAX, GROUP_MEMBERS_MAX};
use crate::rendezvous::rendezvous;
use crate::{PeerId, Time, Wait};
use core::time::Duration;
use std::collections::BTreeSet;

/// The slot of the rendezvous hash that picks who forms a cell. Lower ones pick other things.
const SLOT: u8 = 4;

/// What follows for a cell that is forming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Others are awaited.
    Wait,
    /// This peer forms the cell, of these members.
    Form(Vec<PeerId>),
    /// No other peer is there.
    Alone,
}

/// A cell before its members are known.
#[derive(Debug)]
pub(super) struct Forming {
    /// The others that the roll deals into the cell.
    mates: BTreeSet<PeerId>,
    ready: BTreeSet<PeerId>,
    /// Mates that are in another cell or round, or did not come in time.
    out: BTreeSet<PeerId>,
    since: Time,
    deadline: Time,
    /// Deadlines that have passed.
    expired: u8,
}

impl Forming {
    /// Begins once this peer has trained; `ready` have said that they are, before.
    pub(super) fn new(cx: &mut Context, mates: BTreeSet<PeerId>, ready: BTreeSet<PeerId>) -> Self {
        for peer in &ready {
            // It waited for this peer.
            cx.deadlines.record(Wait::Group, *peer, Duration::ZERO);
        }
        let awaited = mates.iter().copied().filter(|peer| !ready.contains(peer));
        let allowed = cx.deadlines.allow_mates(Wait::Group, awaited);
        Self {
            ready: ready.intersection(&mates).copied().collect(),
            mates,
            out: BTreeSet::new(),
            since: cx.now,
            deadline: cx.wait(Wait::Group, allowed),
            expired: 0,
        }
    }

    pub(super) const fn deadline(&self) -> Time {
        self.deadline
    }

    /// Whether a deadline has passed.
    pub(super) const fn is_late(&self) -> bool {
        self.expired > 0
    }

    /// The mates, whether or not they are there.
    pub(super) fn mates(&self) -> impl Iterator<Item = PeerId> {
        self.mates.iter().copied()
    }

    /// Whether a peer is one of the mates.
    pub(super) fn knows(&self, peer: PeerId) -> bool {
        self.mates.contains(&peer)
    }

    /// A mate has trained.
    pub(super) fn ready(&mut self, cx: &mut Context, peer: PeerId) {
        if self.mates.contains(&peer) && self.ready.insert(peer) {
            let waited = cx.now.since(self.since);
            cx.deadlines.record(Wait::Group, peer, waited);
            self.out.remove(&peer);
        }
    }

    /// A mate will not be in this peer's cell.
    pub(super) fn leave_out(&mut self, peer: PeerId) {
        self.ready.remove(&peer);
        self.out.insert(peer);
    }

    /// Whether a mate that is not ready is waited for.
    fn is_awaited(&self, cx: &Context, peer: PeerId) -> bool {
        let ahead = |round| round > cx.round;
        let there = cx.view.get(peer).is_some_and(|r| !ahead(r.round)) && cx.view.serves(peer);
        there && !self.ready.contains(&peer) && !self.out.contains(&peer)
    }

    /// Who forms the cell, as far as this peer knows.
    fn first(&self, cx: &Context) -> PeerId {
        let rank = |peer: PeerId| (rendezvous(&cx.plan.run, cx.round, SLOT, peer), peer);
        let awaited = self.mates().filter(|peer| self.is_awaited(cx, *peer));
        let others = awaited.chain(self.ready.iter().copied());
        let me = cx.me();
        others.fold(me, |first, peer| match rank(peer) > rank(first) {
            true => peer,
            false => first,
        })
    }

    /// What follows now.
    pub(super) fn step(&self, cx: &Context) -> Step {
        let awaited = self.mates().any(|peer| self.is_awaited(cx, peer));
        if !awaited && self.ready.is_empty() {
            return Step::Alone;
        }
        if self.expired > CELL_FORMING_WAITS_MAX {
            return Step::Alone;
        }
        if self.first(cx) != cx.me() || awaited {
            return Step::Wait;
        }
        let me = cx.me();
        let mut members: Vec<PeerId> = self.ready.iter().copied().collect();
        members.truncate(GROUP_MEMBERS_MAX - 1);
        members.push(me);
        members.sort_unstable();
        Step::Form(members)
    }

    /// The deadline may have passed: those that are not ready are given up, and then those that should
    /// have formed the cell.
    pub(super) fn timeout(&mut self, cx: &mut Context) {
        if cx.now < self.deadline {
            return;
        }
        self.expired = self.expired.saturating_add(1);
        let late: Vec<PeerId> = self.mates().filter(|p| self.is_awaited(cx, *p)).collect();
        if late.is_empty() {
            let first = self.first(cx);
            if first != cx.me() {
                self.leave_out(first);
                cx.suspect(first);
            }
        }
        for peer in late {
            self.leave_out(peer);
            cx.suspect(peer);
        }
        let answer = cx.deadlines.answer();
        self.deadline = cx.wait(Wait::Group, answer);
    }
}
