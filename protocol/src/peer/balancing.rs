//! Balanced rounds: what a peer measures of itself and of others, and the inner steps that follow.

use crate::exchange::{AgreedMessage, ExchangeMessage, FormingMessage};
use crate::peer::Peer;
use crate::{Pace, PeerId, StepBudget, TrainSummary};

impl Peer {
    /// How much to train in the round that begins, given the plan's budget.
    pub(super) fn balanced(&mut self, budget: StepBudget) -> StepBudget {
        let StepBudget::Steps(most) = budget else {
            return budget;
        };
        if self.cx.plan.synchronization.pace != Pace::Balanced {
            return budget;
        }
        self.balance.begin(self.cx.round, self.cx.now);
        let live = self.cx.view.live();
        let live: Vec<PeerId> = live.map(|(peer, _)| peer).collect();
        let liars = self.cx.plan.liars_of(live.len() + 1);
        StepBudget::Steps(self.balance.steps(most, liars, live.into_iter()))
    }

    /// This peer's training of the round ended.
    pub(super) fn balance_own(&mut self, summary: &TrainSummary) {
        let (round, now) = (self.cx.round, self.cx.now);
        self.balance.own(round, now, summary.samples);
    }

    /// Another peer says that it has trained. Its message was half a round trip under way.
    pub(super) fn balance_other(&mut self, from: PeerId, message: &ExchangeMessage) {
        let ExchangeMessage::Agreed(AgreedMessage::Forming(message)) = message else {
            return;
        };
        let (round, samples) = match message {
            FormingMessage::Ready { round, said, .. } => (*round, said.weight),
            FormingMessage::SignedReady { round, seat, .. } => (*round, seat.weight),
            _ => return,
        };
        let rtt = self.cx.view.get(from).and_then(|remote| remote.rtt);
        let latency = rtt.unwrap_or_default() / 2;
        self.balance
            .other(from, round, (self.cx.now, latency), samples);
    }
}
