//! Helping others: states for newcomers, decisions of past rounds for stragglers.
//!
//! A state is pinned while this peer trains, so that no round waits for it. Donors that
//! are asked in the same round pin the same bits, so a newcomer can draw on all of them.

use crate::core::Phase;
use crate::limits::{PIN_LIFETIME, VIEW_PEERS_MAX};
use crate::peer::Peer;
use crate::peer::lag::Offer;
use crate::wire::{Scoped, TransferMessage};
use crate::{Base, Done, Order, OrderId, PeerId, Round};

impl Peer {
    pub(super) fn state_asked(&mut self, from: PeerId, at_least: Round) {
        let holds = (self.ready() || self.at_rest()) && self.catch_up.idle();
        if !holds || self.cx.round < at_least {
            self.cx.send(from, TransferMessage::StateRefuse);
            return;
        }
        let usable = self.usable_pin();
        if let Some(offer) = usable.filter(|offer| offer.state.round >= at_least) {
            self.donor.pinned = Some((offer, self.cx.now));
            self.cx.send(from, offer.message());
            return;
        }
        if self.donor.askers.len() < VIEW_PEERS_MAX && !self.donor.askers.contains(&from) {
            self.donor.askers.push(from);
        }
        if matches!(
            self.phase,
            Phase::Join | Phase::Train | Phase::Settle | Phase::Paused | Phase::Finished
        ) {
            self.pin();
        }
    }

    /// The pinned state, while a newcomer could still catch up from it.
    fn usable_pin(&self) -> Option<Offer> {
        let (offer, _) = self.donor.pinned?;
        let state = offer.state;
        let current = state.round == self.cx.round;
        let agreed = self.cx.plan.exchange.agrees();
        // The newcomer replays every round since then, so none may be missing.
        let mut since = (state.round.0..self.cx.round.0).map(Round);
        let replayable = agreed && since.all(|round| self.history(round).is_some());
        (current || replayable).then_some(offer)
    }

    /// The decisions of a past round, while all of them are here.
    fn history(&self, round: Round) -> Option<Vec<Scoped>> {
        let fragments = self.cx.plan.fragments_of(round).count();
        self.exchange.history()?.decisions(round, fragments)
    }

    fn keep_since(&mut self, round: Option<Round>) {
        if let Some(history) = self.exchange.history_mut() {
            history.keep_since(round);
        }
    }

    fn pin(&mut self) {
        if self.donor.pinning.is_none() {
            if let Some((old, _)) = self.donor.pinned.take() {
                let round = old.state.round;
                self.cx.order(Order::Unpin { round });
            }
            let round = self.cx.round;
            // A peer that takes the state over needs the rounds that end meanwhile.
            self.keep_since(Some(round));
            let anchor = self.cx.anchor();
            let note = self.shared_bytes();
            let order = self.cx.order(Order::Pin { round, note });
            self.donor.pinning = Some((order, anchor));
        }
    }

    /// An order of the donor was answered; false when it is not one.
    pub(super) fn donor_done(&mut self, order: OrderId, done: &Done) -> bool {
        let Some((_, anchor)) = self.donor.pinning.filter(|(pinning, _)| *pinning == order) else {
            return false;
        };
        self.donor.pinning = None;
        let answer = match done {
            Done::Pinned(state) => {
                let offer = Offer {
                    state: *state,
                    anchor,
                };
                self.donor.pinned = Some((offer, self.cx.now));
                offer.message()
            }
            _ => {
                self.keep_since(None);
                TransferMessage::StateRefuse
            }
        };
        for asker in std::mem::take(&mut self.donor.askers) {
            self.cx.send(asker, answer.clone());
        }
        true
    }

    pub(super) fn history_asked(&mut self, from: PeerId, began: Base) {
        let round = began.round;
        if self.cx.view.split.differs(began) {
            // It comes from another branch: what was decided in this one is no mean of its own.
            self.cx.send(from, TransferMessage::HistoryRefuse { round });
            return;
        }
        if let Some(decisions) = self.history(round) {
            for decision in decisions {
                self.cx.send(from, decision);
            }
            return;
        }
        let under_way = matches!(self.phase, Phase::Exchange | Phase::Apply);
        let askers = &mut self.donor.history_askers;
        if round == self.cx.round && under_way && askers.len() < VIEW_PEERS_MAX {
            if !askers.contains(&(from, began)) {
                askers.push((from, began));
            }
        } else {
            self.cx.send(from, TransferMessage::HistoryRefuse { round });
        }
    }

    /// A round ended: serves the peers that waited for its state.
    pub(super) fn donor_round_ended(&mut self) {
        for (peer, began) in std::mem::take(&mut self.donor.history_askers) {
            self.history_asked(peer, began);
        }
        if !self.donor.askers.is_empty() {
            self.pin();
        }
    }

    /// Releases a state without recent requests.
    pub(super) fn donor_tick(&mut self) {
        let pinned = self.donor.pinned;
        if pinned.is_some_and(|(_, used)| self.cx.now.since(used) > PIN_LIFETIME) {
            self.drop_pin();
        }
    }

    /// Releases the pinned state. Once this peer has taken another state over, it must not serve
    /// the old one: it is of the same round, but not what this peer holds and announces.
    pub(super) fn drop_pin(&mut self) {
        if let Some((offer, _)) = self.donor.pinned.take() {
            self.keep_since(None);
            let round = offer.state.round;
            self.cx.order(Order::Unpin { round });
        }
    }
}
