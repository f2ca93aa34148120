//! Pushes that begin in their turn, and what a peer learns of links when pushes end.

use crate::core::context::Context;
use crate::core::sends::{SendTurn, Waiting};
use crate::schedule::AgreedLinks;
use crate::{PeerId, PushOutcome, SliceId};

impl Context {
    /// Queues a push that begins in its turn.
    pub(crate) fn push_in_turn(
        &mut self,
        turn: SendTurn,
        to: PeerId,
        slice: SliceId,
        send: Waiting,
    ) {
        if !self.view.get(to).is_some_and(|remote| remote.linked) {
            // Nothing waits for what cannot arrive.
            self.push(to, slice, send.meta, send.priority);
            return;
        }
        self.outbox.sends.add(turn, to, slice, send);
        self.send_next();
    }

    /// A push ended: the next ones may begin.
    pub(crate) fn push_ended(&mut self, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        self.view.links.pushed(self.now, to, slice, outcome);
        self.view.measured.pushed(self.now, to, slice, outcome);
        self.outbox.sends.ended(to, slice);
        self.send_next();
    }

    /// A peer's link is gone: no deadline goes by it, and others do not wait for sends to it.
    pub(crate) fn forget_link(&mut self, peer: PeerId) {
        self.deadlines.forget(peer);
        self.outbox.sends.link_gone(peer);
        self.send_next();
    }

    fn send_next(&mut self) {
        let longest = self.deadlines.ceiling();
        while let Some((to, slice, send)) = self.outbox.sends.next(self.now, longest) {
            self.push(to, slice, send.meta, send.priority);
        }
    }

    /// These sends wait for no turn any more: they begin now.
    pub(crate) fn send_now(&mut self, of: impl Fn(&SliceId) -> bool) {
        for (to, slice, send) in self.outbox.sends.take(of) {
            self.push(to, slice, send.meta, send.priority);
        }
    }

    /// These sends are of no use any more.
    pub(crate) fn forget_sends(&mut self, of: impl Fn(&SliceId) -> bool) {
        self.outbox.sends.take(of);
    }

    /// What the proposer of a group of these members says of their links.
    pub(crate) fn propose_links(&mut self, members: &[PeerId]) -> Option<AgreedLinks> {
        let links = self.plan.schedule.link_plan();
        let links = links.filter(|_| self.plan.names_links())?;
        let of = (links, self.plan.largest_aggregate());
        Some(self.view.measured.propose(of, self.round, members))
    }
}
