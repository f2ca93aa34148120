//! Gossip: push a share of the own mass to the round's partners, mix what arrived by the deadline.
//!
//! Push-sum over any column-stochastic W. Peer i holds parameters z_i and weight w_i (mass
//! w_i z_i). In a round it encodes z_i once as zh_i and pushes (zh_i, W_ji w_i) to each partner j;
//! then
//!
//! ```text
//! z_i <- (w_i z_i - sum_j W_ji w_i zh_i + sum_k m_k zh_k) / (w_i - sum_j W_ji w_i + sum_k m_k)
//! ```
//!
//! over the slices k that arrived with masses m_k. With a doubly stochastic W and no loss every
//! weight stays one and this is D-PSGD's `X W`. The sums of mass and weight over live peers plus
//! unacknowledged transfers are conserved whatever is late, lost or refused: a push that surely
//! did not arrive goes back into the sender's own mix.
//!
//! Cost per peer and round with d partners: d pushes of one encoded fragment, no control message;
//! one latency. Waits for the expected partners of the same round until the deadline, never
//! longer; what comes later is mixed later. `ExchangeKind::Push` is the same without the wait: no
//! latency, and whatever has arrived is mixed, of whichever round (overlapped SGP, GoSGD).
//!
//! **Source:** Assran et al. 2019, "Stochastic Gradient Push", algorithm 1; Kempe, Dobra, Gehrke
//! 2003, "Gossip-Based Computation of Aggregate Information", protocol Push-Sum; Lian et al. 2017
//! (D-PSGD) for the doubly stochastic case; Blot et al. 2016, GoSGD, for pushes that nobody waits for.

mod ledger;
mod mixing;

use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::{Ending, Exchange, Outcome, Signal, all_ended};
use crate::limits::{INBOX_SLICES_MAX, ROUNDS_AHEAD_MAX};
use crate::{
    Event, FragmentId, Part, PeerError, PeerId, Plan, PushOutcome, SliceId, SliceMeta, Time,
    Topology, TrainSummary, Wait,
};
use ledger::Ledger;
use mixing::{Mixing, Stage, Waiting};
use std::collections::BTreeMap;

/// The gossip exchange of one peer.
pub(crate) struct Gossip {
    topology: Box<dyn Topology>,
    /// Whether the round's partners are waited for.
    waits: bool,
    /// Push-sum weight of each fragment.
    weights: Vec<f64>,
    ledger: Ledger,
    inbox: Vec<Waiting>,
    inbox_of: BTreeMap<PeerId, usize>,
    mixings: Vec<Mixing>,
    /// When the round's exchange began.
    began: Time,
}

impl Gossip {
    pub(crate) fn new(plan: &Plan, topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            waits: plan.exchange.waits(),
            weights: vec![1.0; plan.fragments.len()],
            ledger: Ledger::default(),
            inbox: Vec::new(),
            inbox_of: BTreeMap::new(),
            mixings: Vec::new(),
            began: Time::ZERO,
        }
    }

    /// The round's partners by id. Ranks are positions among the live peers.
    fn partners(&self, cx: &Context) -> (Vec<(PeerId, f64)>, Vec<PeerId>) {
        let mut live: Vec<PeerId> = cx.view.live().map(|(id, _)| id).collect();
        let rank = live.partition_point(|id| *id < cx.me());
        live.insert(rank, cx.me());
        let partners = self.topology.partners(cx.round, rank, live.len());
        let id = |rank: usize| live.get(rank).copied().filter(|id| *id != cx.me());
        let send = partners
            .send
            .iter()
            .filter_map(|(rank, share)| Some((id(*rank)?, *share)));
        // Beyond a complete view every peer ranks others than its partner does: whoever would be
        // waited for here pushes somewhere else.
        let complete = self.waits && cx.view.is_complete();
        let receive = partners.receive.iter().filter(|_| complete);
        (
            send.collect(),
            receive.filter_map(|rank| id(*rank)).collect(),
        )
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
    ) -> Result<(), PeerError> {
        let unexpected = |what: &str| {
            Err(PeerError::Unexpected {
                what: what.to_owned(),
            })
        };
        if slice.origin != from || slice.part != Part::Contribution || slice.shard != 0 {
            return unexpected("a gossip slice must be its sender's own contribution");
        }
        if !(meta.weight.is_finite() && meta.weight > 0.0 && meta.weight <= 1e6) {
            return unexpected("a gossip slice's weight must be positive and finite");
        }
        if usize::from(slice.fragment.0) >= self.weights.len() {
            return unexpected("a slice of a fragment that the plan does not have");
        }
        if self.inbox.iter().any(|w| w.slice == slice) {
            return Ok(()); // a retry of what is here already
        }
        let count = self.inbox_of.entry(from).or_default();
        if *count >= INBOX_SLICES_MAX * self.weights.len() {
            return unexpected("too many gossip slices at once");
        }
        *count += 1;
        self.inbox.push(Waiting {
            from,
            slice,
            weight: meta.weight,
        });
        let began = self.began;
        if let Some(mixing) = self.mixing_of(slice)
            && mixing.expected.remove(&from)
        {
            cx.deadlines
                .record(Wait::Partners, from, cx.now.since(began));
        }
        self.advance(cx);
        Ok(())
    }

    fn mixing_of(&mut self, slice: SliceId) -> Option<&mut Mixing> {
        let mixing = self.mixings.get_mut(usize::from(slice.fragment.0))?;
        (mixing.round <= slice.round).then_some(mixing)
    }

    fn pushed(&mut self, cx: &mut Context, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        if outcome == PushOutcome::Unknown
            && let Some(weight) = self.ledger.drop_push(to, slice)
        {
            cx.emit(Event::MassUncertain { peer: to, weight });
        } else if outcome == PushOutcome::Delivered {
            self.ledger.drop_push(to, slice);
        } else {
            self.ledger.give_back(to, slice);
        }
        self.ledger.release(cx);
    }

    /// Takes every fragment one stage further where nothing is left to wait for.
    fn advance(&mut self, cx: &mut Context) {
        for index in 0..self.mixings.len() {
            let ready = self.mixings.get(index).is_some_and(Mixing::complete);
            if ready {
                self.mix(cx, index);
            }
        }
        // Encoding comes before collecting: the clock of the wait goes on.
        let open = |m: &Mixing| matches!(m.stage, Stage::Encoding | Stage::Collecting);
        let waits = self.mixings.iter().any(open);
        if !waits {
            cx.waited(Wait::Partners, false);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// Orders the mix of one fragment from all that is there.
    fn mix(&mut self, cx: &mut Context, index: usize) {
        let (Some(mixing), Some(weight)) =
            (self.mixings.get_mut(index), self.weights.get_mut(index))
        else {
            return;
        };
        let before = *weight;
        let mut inputs = Vec::new();
        if mixing.sent > 0.0 {
            inputs.push((mixing.slice, -mixing.sent));
        }
        let latest = mixing.round;
        let (fragment, waits) = (mixing.slice.fragment, self.waits);
        let mut taken: Vec<Waiting> = Vec::new();
        self.inbox.retain(|w| {
            // What is far ahead will not be waited for: its mass counts now.
            let ahead = w.slice.round.since(latest);
            let due = !waits || ahead == 0 || ahead > ROUNDS_AHEAD_MAX;
            let take = w.slice.fragment == fragment && due;
            if take {
                taken.push(*w);
            }
            !take
        });
        taken.sort_by_key(|w| (w.from, w.slice));
        for waiting in &taken {
            if let Some(count) = self.inbox_of.get_mut(&waiting.from) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.inbox_of.remove(&waiting.from);
                }
            }
            inputs.push((waiting.slice, waiting.weight));
        }
        let returned = self.ledger.take_returned(fragment);
        if !returned.is_empty() {
            self.ledger.hold(mixing.slice);
        }
        inputs.extend(returned);
        *weight += inputs.iter().map(|(_, mass)| mass).sum::<f64>();
        mixing.mixed = taken;
        mixing.combine(cx, before, inputs);
    }

    /// A mix could not be done because a slice is bad: undo its weight and try without it.
    fn without(&mut self, cx: &mut Context, index: usize, bad: SliceId) {
        let (Some(mixing), Some(weight)) =
            (self.mixings.get_mut(index), self.weights.get_mut(index))
        else {
            return;
        };
        let (keep, mut inputs) = mixing.last_combine.clone();
        let all = inputs.len();
        let lost = inputs.iter().filter(|(slice, _)| *slice == bad);
        *weight -= lost.map(|(_, mass)| mass).sum::<f64>();
        inputs.retain(|(slice, _)| *slice != bad);
        if inputs.len() == all {
            // Not one of the inputs: without them would be the same again.
            mixing.stage = Stage::Ended(Ending::Void);
            return;
        }
        mixing.combine(cx, keep, inputs);
    }

    fn done(&mut self, cx: &mut Context, order: crate::OrderId, done: &crate::Done) {
        let Some(index) = self.mixings.iter().position(|m| m.order == Some(order)) else {
            return;
        };
        let Some(mixing) = self.mixings.get_mut(index) else {
            return;
        };
        mixing.order = None;
        match done {
            crate::Done::Encoded { bytes, .. } => {
                let weight = self.weights.get(index).copied().unwrap_or(1.0);
                mixing.push(cx, weight, *bytes, &mut self.ledger);
            }
            crate::Done::Combined => {
                let weight = self.weights.get(index).copied().unwrap_or(1.0);
                mixing.end(cx, weight);
                self.ledger.unlock(mixing.slice);
                self.ledger.release(cx);
            }
            crate::Done::Failed(crate::WorkError::BadSlice { slice, reason, .. }) => {
                let slice = *slice;
                cx.accuse(slice.origin, format!("a slice that is bad: {reason}"));
                self.without(cx, index, slice);
            }
            _ => {
                if mixing.stage == Stage::Combining
                    && let Some(weight) = self.weights.get_mut(index)
                {
                    // The parameters are unmixed; what was pushed is gone from their mass.
                    *weight = mixing.last_combine.0 - mixing.sent;
                }
                mixing.stage = Stage::Ended(Ending::Void);
            }
        }
        self.advance(cx);
    }
}

impl Exchange for Gossip {
    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        let (send, receive) = self.partners(cx);
        self.began = cx.now;
        cx.await_partners(receive.iter().copied());
        let fragments: Vec<_> = cx.plan.fragment_ids().collect();
        self.mixings = fragments
            .into_iter()
            .map(|fragment| {
                let mut mixing = Mixing::new(cx, fragment, send.clone(), &receive);
                let here = self.inbox.iter().filter(|w| w.slice.fragment == fragment);
                for waiting in here.filter(|w| w.slice.round >= cx.round) {
                    mixing.expected.remove(&waiting.from);
                }
                if mixing.order.is_some() {
                    self.ledger.lock(mixing.slice);
                }
                mixing
            })
            .collect();
        self.advance(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        match signal {
            Signal::Arrived {
                from, slice, meta, ..
            } => {
                let result = self.arrived(cx, from, slice, meta);
                if result.is_err() {
                    cx.order(crate::Order::Release { slice });
                }
                return result;
            }
            Signal::Pushed { to, slice, outcome } => self.pushed(cx, to, slice, outcome),
            Signal::Done { order, done } => self.done(cx, order, done),
            Signal::Gone(peer) => {
                self.mixings.iter_mut().for_each(|m| {
                    m.expected.remove(&peer);
                });
                self.advance(cx);
            }
            Signal::Timeout => {
                cx.waited(Wait::Partners, true);
                let late: Vec<PeerId> = self
                    .mixings
                    .iter()
                    .flat_map(|m| m.expected.iter().copied())
                    .collect();
                late.into_iter().for_each(|peer| cx.suspect(peer));
                self.mixings.iter_mut().for_each(|m| m.expected.clear());
                self.advance(cx);
            }
            Signal::Message { .. } => {
                return Err(PeerError::Unexpected {
                    what: "an all-reduce message in a gossip run".to_owned(),
                });
            }
            Signal::Fetched { .. } | Signal::FetchFailed { .. } | Signal::Heard(_) => {}
        }
        Ok(())
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        all_ended(self.mixings.iter().map(|m| (m.slice.fragment, m.ending())))
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let all = self.mixings.iter().all(|m| m.ending().is_some());
        (all && !self.mixings.is_empty()).then_some(Outcome::Ended)
    }

    fn finish(&mut self, cx: &mut Context) {
        for mixing in std::mem::take(&mut self.mixings) {
            for waiting in mixing.mixed {
                cx.order(crate::Order::Release {
                    slice: waiting.slice,
                });
            }
            self.ledger.unlock(mixing.slice);
        }
        self.ledger.release(cx);
        cx.timers.stop(Timer::Exchange);
        if self.waits {
            cx.follow_the_others(ROUNDS_AHEAD_MAX);
        }
    }

    fn weights(&self) -> Vec<f64> {
        self.weights.clone()
    }

    fn set_weights(&mut self, weights: &[f64]) {
        for (mine, weight) in self.weights.iter_mut().zip(weights) {
            *mine = *weight;
        }
    }

    fn in_flight(&self) -> (f64, f64) {
        let waiting = self.inbox.iter().map(|w| w.weight).sum();
        (self.ledger.mass(), waiting)
    }

    fn held(&self) -> f64 {
        // A push leaves the weight only when its fragment is mixed.
        let pushed = self.mixings.iter().filter(|m| m.stage == Stage::Collecting);
        self.weights.iter().sum::<f64>() - pushed.map(|m| m.sent).sum::<f64>()
            + self.inbox.iter().map(|w| w.weight).sum::<f64>()
            + self.ledger.returned()
    }

    fn waiting(&self) -> usize {
        self.inbox.len()
    }
}
