//! Who is in a round's cell: the peers that the roll deals into it and that have trained in time.
//!
//! Every peer tells the others of its cell that it is ready. One of them, the first by a hash over the
//! round among those that are there, waits for all and says who is a member. Peers that know different
//! rolls differ in whom they tell and in whom they wait for. So a peer with another roll is left out, and
//! the others form their cell without it, after one deadline at most.

use crate::core::context::Context;
use crate::id::rendezvous;
use crate::limits::{CELL_FORMING_WAITS_MAX, GROUP_MEMBERS_MAX};
use crate::sorted::SortedSet;
use crate::{PeerId, Time, Wait};
use core::time::Duration;

/// The slot of the rendezvous hash that picks who forms a cell. Lower ones pick other things.
const SLOT: u8 = 4;

/// The next step of a cell that is forming.
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
    dealt: SortedSet<PeerId>,
    ready: SortedSet<PeerId>,
    /// Those that are in another cell or round, or did not come in time.
    out: SortedSet<PeerId>,
    since: Time,
    allowed: Duration,
    deadline: Time,
    /// Deadlines that have passed.
    expired: u8,
    /// Number of them when the peer that should form the cell was given up.
    succeeded: u8,
}

impl Forming {
    /// Begins once this peer has trained; `ready` have said that they are, before.
    pub(super) fn new(
        cx: &mut Context,
        dealt: SortedSet<PeerId>,
        ready: SortedSet<PeerId>,
    ) -> Self {
        for peer in &ready {
            // It waited for this peer.
            cx.deadlines.record(Wait::Group, *peer, Duration::ZERO);
        }
        let awaited = dealt.iter().copied().filter(|peer| !ready.contains(peer));
        let allowed = cx.deadlines.allow_alike(Wait::Group, awaited);
        Self {
            ready: ready.intersection(&dealt).copied().collect(),
            dealt,
            out: SortedSet::new(),
            since: cx.now,
            allowed,
            deadline: cx.wait(Wait::Group, allowed),
            expired: 0,
            succeeded: 0,
        }
    }

    pub(super) const fn deadline(&self) -> Time {
        self.deadline
    }

    /// The others of the cell, whether or not they are there.
    pub(super) fn dealt(&self) -> impl Iterator<Item = PeerId> {
        self.dealt.iter().copied()
    }

    /// A peer is dealt into the cell.
    pub(super) fn knows(&self, peer: PeerId) -> bool {
        self.dealt.contains(&peer)
    }

    /// A peer of the cell has trained.
    pub(super) fn ready(&mut self, cx: &mut Context, peer: PeerId) {
        if self.dealt.contains(&peer) && self.ready.insert(peer) {
            let waited = cx.now.since(self.since);
            cx.deadlines.record(Wait::Group, peer, waited);
            self.out.remove(&peer);
            if self.first(cx) == peer {
                // Its own deadline begins now.
                cx.waited(Wait::Group);
                let allowed = self.allowed + cx.deadlines.answer();
                self.deadline = cx.wait(Wait::Group, allowed);
            }
        }
    }

    /// When this peer began to wait, and the peers that were ready since.
    pub(super) fn over(self) -> (Time, SortedSet<PeerId>) {
        (self.since, self.ready)
    }

    /// A peer will not be in this peer's cell.
    pub(super) fn leave_out(&mut self, peer: PeerId) {
        self.ready.remove(&peer);
        self.out.insert(peer);
    }

    /// A peer says that it is in another cell, or ahead. Those that are with it are about to say so too, so
    /// this peer waits for their words before it forms a cell without them.
    pub(super) fn passed(&mut self, cx: &mut Context, peer: PeerId) {
        let first = self.first(cx);
        self.leave_out(peer);
        if first == peer {
            self.succeeded = self.expired + 1;
            cx.waited(Wait::Group);
            let answer = cx.deadlines.answer();
            self.deadline = cx.wait(Wait::Group, answer);
        }
    }

    /// A peer may be a member, as far as this peer knows: it is linked and not in another round.
    fn may_come(&self, cx: &Context, peer: PeerId) -> bool {
        let behind = cx.view.get(peer).is_some_and(|r| r.round <= cx.round);
        behind && cx.view.takes_part(peer) && !self.out.contains(&peer)
    }

    /// A peer that is not ready is waited for.
    fn is_awaited(&self, cx: &Context, peer: PeerId) -> bool {
        self.may_come(cx, peer) && cx.view.serves(peer) && !self.ready.contains(&peer)
    }

    /// The peers that are waited for: those that are not ready, then the one that forms the cell.
    pub(super) fn awaited(&self, cx: &Context) -> Vec<PeerId> {
        let late: Vec<PeerId> = self.dealt().filter(|p| self.is_awaited(cx, *p)).collect();
        if late.is_empty() {
            vec![self.first(cx)]
        } else {
            late
        }
    }

    /// Who forms the cell. Whom a peer suspects does not count: each would find another first one.
    fn first(&self, cx: &Context) -> PeerId {
        let rank = |peer: PeerId| (rendezvous(&cx.plan.run, cx.round, SLOT, peer), peer);
        let others = self.dealt().filter(|peer| self.may_come(cx, *peer));
        let others = others.chain(self.ready.iter().copied());
        let me = cx.me();
        others.fold(me, |first, peer| {
            if rank(peer) > rank(first) {
                peer
            } else {
                first
            }
        })
    }

    pub(super) fn step(&self, cx: &Context) -> Step {
        let awaited = self.dealt().any(|peer| self.is_awaited(cx, peer));
        let may_come = |peer| self.may_come(cx, peer);
        if self.ready.is_empty() && !self.dealt().any(may_come) {
            return Step::Alone;
        }
        // Each wait gives up one that should have formed the cell: without a bound all would be
        // tried.
        if self.expired > CELL_FORMING_WAITS_MAX {
            return Step::Alone;
        }
        // After a silent peer the next one lets the others answer first: they may be in a cell already.
        if self.first(cx) != cx.me() || awaited || self.expired < self.succeeded {
            return Step::Wait;
        }
        let me = cx.me();
        let mut members: Vec<PeerId> = self.ready.iter().copied().collect();
        members.truncate(GROUP_MEMBERS_MAX - 1);
        members.push(me);
        members.sort_unstable();
        Step::Form(members)
    }

    /// Waits for the whole cell again: most peers are behind.
    pub(super) fn wait_on(&mut self, cx: &mut Context) {
        // Those that were left out as late are behind, so they may still come.
        self.out.clear();
        // Nothing follows before the deadline, unless one of them comes.
        (self.expired, self.succeeded) = (0, 1);
        cx.waited(Wait::Group);
        let answer = cx.deadlines.answer();
        self.deadline = cx.wait(Wait::Group, answer);
    }

    /// The deadline may have passed: those that are not ready are given up, and then those that should
    /// have formed the cell. True if it has.
    pub(super) fn timeout(&mut self, cx: &mut Context) -> bool {
        if cx.now < self.deadline {
            return false;
        }
        self.expired = self.expired.saturating_add(1);
        let not_ready = |peer: &PeerId| self.may_come(cx, *peer) && !self.ready.contains(peer);
        let late: Vec<PeerId> = self.dealt().filter(not_ready).collect();
        let first = self.first(cx);
        // The first wait was for the late ones, so only now has the one that forms had its time.
        if late.is_empty() && self.expired > 1 && first != cx.me() {
            self.leave_out(first);
        }
        for peer in late {
            self.leave_out(peer);
            cx.suspect(peer);
        }
        if self.first(cx) != first {
            self.succeeded = self.expired + 1;
        }
        let answer = cx.deadlines.answer();
        self.deadline = cx.wait(Wait::Group, answer);
        true
    }
}
