//! Observing: a peer whose certificate gives it no part in rounds. It trains nothing and tells the
//! others that it is not ready, so no group contains it and no round waits for it. It stays in `Join`,
//! takes over what the others decide, and passes through `Settle` to evaluate and to save.
//!
//! The others do not go by what it says: their drivers know its certificate, and a message of it about
//! a round breaks a rule.

use crate::PeerId;
use crate::core::Phase;
use crate::limits::{ALIVE_EVERY, OBSERVE_EVERY};
use crate::peer::Peer;
use crate::peer::replay::STALENESS_MAX;

/// Rounds that are replayed one by one. A state is fewer bytes than more of them.
const REPLAYED_MAX: u64 = 8;

impl Peer {
    /// A certificate gives this peer, or a linked one, no part in rounds.
    pub(super) fn observes(&mut self, peer: PeerId) {
        if peer == self.cx.me() {
            self.life.once.observes = true;
        } else if let Some(remote) = self.cx.view.get_mut(peer) {
            remote.contact.observes = true;
            remote.ready = false;
        }
    }

    /// Whether another peer has no part in rounds.
    pub(super) fn only_observes(&self, peer: PeerId) -> bool {
        self.cx
            .view
            .get(peer)
            .is_some_and(|remote| remote.contact.observes)
    }

    /// In `Join`, with nothing under way: takes over what the others have decided, if they have.
    pub(super) fn follow(&mut self) {
        let (round, begun) = (self.cx.round, self.life.once.begun);
        let live = || self.cx.view.live();
        let furthest = live().max_by_key(|(id, remote)| (remote.round, *id));
        let Some((donor, newest)) = furthest.map(|(id, remote)| (id, remote.round)) else {
            return;
        };
        let agrees = self.cx.plan.exchange.agrees();
        let ended = self.cx.plan.rounds > 0 && newest.0 >= self.cx.plan.rounds;
        let rested = self.cx.now.since(self.life.once.followed) >= OBSERVE_EVERY;
        let ahead = live().filter(|(_, remote)| remote.round > round).count();
        // Where peers agree on nothing, their states differ in every round, and each costs a model.
        let due = agrees || ended || rested || !begun;
        if ahead <= self.liars() || !due {
            return;
        }
        self.stop_waiting_for_peers();
        self.life.once.followed = self.cx.now;
        if begun && agrees && newest.since(round) <= REPLAYED_MAX {
            // It has no delta of its own to keep.
            self.replay(donor, STALENESS_MAX);
        } else {
            self.ask_state();
        }
    }

    /// In `Join`: follows now, or when the others are ahead.
    pub(super) fn follow_later(&mut self) {
        self.follow();
        if self.catch_up.idle() {
            self.wait_for_peers(OBSERVE_EVERY.max(ALIVE_EVERY));
        }
    }

    /// A state is here or a round replayed: evaluates and saves if due, then follows on.
    pub(super) fn looked(&mut self) {
        self.life.once.begun = true;
        self.stop_waiting_for_peers();
        self.enter(Phase::Settle);
        self.settle();
        self.tell_alive();
    }
}
