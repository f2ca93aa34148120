//! Helping others: states for newcomers, decisions of past rounds for stragglers.
//!
//! A state is pinned while this peer trains, so that no round waits for it. Donors that
//! are asked in the same round pin the same bits, so a newcomer can draw on all of them.

use crate::core::Phase;
use crate::core::context::Context;
use crate::exchange::Exchange;
use crate::limits::{OPENINGS_MAX, PIN_LIFETIME, VIEW_PEERS_MAX};
use crate::wire::{Offer, Scoped, TransferMessage};
use crate::{Base, Digest, Done, Order, OrderId, PeerId, Round, Time, Unneeded};
use std::collections::VecDeque;

/// Peers that asked for a state or a past round, and the pinned state.
#[derive(Debug, Default)]
pub(super) struct Donor {
    askers: Vec<PeerId>,
    history_askers: Vec<(PeerId, Base)>,
    /// The order to pin a state, and the hash of its parameters.
    pinning: Option<(OrderId, Digest)>,
    pinned: Option<(Offer, Time)>,
    /// The rounds that this peer began last, and with which parameters.
    pub(super) opened: VecDeque<Base>,
}

impl Donor {
    /// This peer begins a round. It knows no more of later ones from which it went back.
    pub(super) fn open(&mut self, opening: Base) {
        let later = |last: &Base| last.round >= opening.round;
        while self.opened.back().is_some_and(later) {
            self.opened.pop_back();
        }
        self.opened.push_back(opening);
        if self.opened.len() > OPENINGS_MAX {
            self.opened.pop_front();
        }
    }

    /// A peer is gone.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.askers.retain(|p| *p != peer);
        self.history_askers.retain(|(p, _)| *p != peer);
    }

    pub(super) fn state_asked(
        &mut self,
        cx: &mut Context,
        exchange: &mut dyn Exchange,
        phase: Phase,
        from: PeerId,
        at_least: Round,
    ) {
        let usable = self.usable_pin(cx, exchange);
        // One pinned state serves all that ask; a second one would be another copy of the model.
        if let Some(offer) = usable.filter(|offer| offer.state.round >= at_least) {
            self.pinned = Some((offer, cx.now));
            cx.send(from, TransferMessage::StateOffer(offer));
            return;
        }
        if self.askers.len() < VIEW_PEERS_MAX && !self.askers.contains(&from) {
            self.askers.push(from);
        }
        // In the other phases the anchor is about to change: the asker gets the next one.
        if matches!(
            phase,
            Phase::Join | Phase::Train | Phase::Settle | Phase::Paused | Phase::Finished
        ) {
            self.pin(cx, exchange);
        }
    }

    /// The pinned state, while a newcomer could still catch up from it.
    fn usable_pin(&self, cx: &Context, exchange: &dyn Exchange) -> Option<Offer> {
        let (offer, _) = self.pinned?;
        let state = offer.state;
        // A round that was applied in part and is tried again begins with other parameters.
        let began = self.opened.back().filter(|last| last.round == state.round);
        let current = state.round == cx.round && began.is_none_or(|it| it.anchor == offer.anchor);
        let agreed = cx.plan.exchange.agrees();
        // The newcomer replays every round since then, so none may be missing.
        let mut since = (state.round.0..cx.round.0).map(Round);
        let replayable = agreed && since.all(|round| history(cx, exchange, round).is_some());
        (current || replayable).then_some(offer)
    }

    fn pin(&mut self, cx: &mut Context, exchange: &mut dyn Exchange) {
        // Those that ask meanwhile are answered with the one that is on its way.
        if self.pinning.is_none() {
            if let Some((old, _)) = self.pinned.take() {
                let round = old.state.round;
                cx.order(Order::Forget(Unneeded::Pinned(round)));
            }
            let round = cx.round;
            // A peer that takes the state over needs the rounds that end meanwhile.
            keep_since(exchange, Some(round));
            let (anchor, note) = (cx.anchor(), cx.replicated_bytes());
            let order = cx.order(Order::Pin { round, note });
            self.pinning = Some((order, anchor));
        }
    }

    /// An order of the donor was answered; false when it is not one.
    pub(super) fn done(
        &mut self,
        cx: &mut Context,
        exchange: &mut dyn Exchange,
        order: OrderId,
        done: &Done,
    ) -> bool {
        let Some((_, anchor)) = self.pinning.filter(|(pinning, _)| *pinning == order) else {
            return false;
        };
        self.pinning = None;
        let answer = if let Done::Pinned(state) = done {
            let state = *state;
            let offer = Offer { state, anchor };
            self.pinned = Some((offer, cx.now));
            TransferMessage::StateOffer(offer)
        } else {
            keep_since(exchange, None);
            TransferMessage::StateRefuse
        };
        for asker in std::mem::take(&mut self.askers) {
            cx.send(asker, answer.clone());
        }
        true
    }

    /// A straggler asks for the decisions of a round.
    pub(super) fn history_asked(
        &mut self,
        cx: &mut Context,
        exchange: &dyn Exchange,
        phase: Phase,
        from: PeerId,
        began: Base,
    ) {
        let round = began.round;
        let under_way = matches!(phase, Phase::Exchange | Phase::Apply);
        let signs = cx.plan.agreement.signs();
        // In the same round no one is further, but each may know another part of it.
        if signs && round == cx.round && !under_way && began.anchor == cx.anchor.before(round) {
            self.tell_parts(cx, exchange, from);
            return;
        }
        if cx.view.split.differs(began) {
            // It comes from another branch: what was decided in this one is no mean of its own.
            cx.send(from, TransferMessage::HistoryRefuse { round });
            return;
        }
        if let Some(decisions) = history(cx, exchange, round) {
            for decision in decisions {
                cx.send(from, decision);
            }
            return;
        }
        let askers = &mut self.history_askers;
        // The round is about to end here, and its decisions are then known.
        if round == cx.round && under_way && askers.len() < VIEW_PEERS_MAX {
            if !askers.contains(&(from, began)) {
                askers.push((from, began));
            }
        } else {
            cx.send(from, TransferMessage::HistoryRefuse { round });
        }
    }

    /// This peer has applied its round in part: shows the decisions of that part, and that it knows no others.
    fn tell_parts(&self, cx: &mut Context, exchange: &dyn Exchange, to: PeerId) {
        let round = cx.round;
        let fragments = cx.plan.fragments_of(round);
        let fragments = fragments.filter(|it| cx.anchor.has_changed(round, *it));
        let known = fragments.filter_map(|it| exchange.history()?.decision(round, it));
        let parts: Vec<Scoped> = known.filter(|it| it.body.is_signed()).cloned().collect();
        parts.into_iter().for_each(|part| cx.send(to, part));
        cx.send(to, TransferMessage::HistoryRefuse { round });
    }

    /// A round ended: serves the peers that waited for its state.
    pub(super) fn round_ended(
        &mut self,
        cx: &mut Context,
        exchange: &mut dyn Exchange,
        phase: Phase,
    ) {
        for (peer, began) in std::mem::take(&mut self.history_askers) {
            self.history_asked(cx, exchange, phase, peer, began);
        }
        if !self.askers.is_empty() {
            self.pin(cx, exchange);
        }
    }

    /// Releases a state without recent requests.
    pub(super) fn tick(&mut self, cx: &mut Context, exchange: &mut dyn Exchange) {
        let unused = |(_, used): (Offer, Time)| cx.now.since(used) > PIN_LIFETIME;
        if self.pinned.is_some_and(unused) {
            self.drop_pin(cx, exchange);
        }
    }

    /// Releases the pinned state. Once this peer has taken another state over, it must not serve
    /// the old one: it is of the same round, but not what this peer holds and announces.
    pub(super) fn drop_pin(&mut self, cx: &mut Context, exchange: &mut dyn Exchange) {
        if let Some((offer, _)) = self.pinned.take() {
            keep_since(exchange, None);
            let round = offer.state.round;
            cx.order(Order::Forget(Unneeded::Pinned(round)));
        }
    }
}

/// The decisions of a past round, while all of them are here.
fn history(cx: &Context, exchange: &dyn Exchange, round: Round) -> Option<Vec<Scoped>> {
    let fragments = cx.plan.fragments_of(round).count();
    exchange.history()?.decisions(round, fragments)
}

fn keep_since(exchange: &mut dyn Exchange, round: Option<Round>) {
    if let Some(history) = exchange.history_mut() {
        history.keep_since(round);
    }
}
