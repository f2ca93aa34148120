//! Whom a round asks, for what, and how much each answer counts.

use super::Pull;
use super::message::PullMessage;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::neighbours::ranks::Ranks;
use crate::exchange::neighbours::rule::MixesOf;
use crate::{PeerId, Round, SliceId, Wait};
use std::collections::BTreeMap;

impl Pull {
    /// The round whose iterates are asked for: this peer's own. With queues, one that is `skip` rounds
    /// behind all partners of its row asks for those that they have all published, and continues
    /// behind them: the tokens of the paper (section 5), which say how far each partner is ahead.
    pub(super) fn find_target(&self, cx: &Context) -> Round {
        let partners = self.row.keys().filter_map(|peer| cx.view.get(*peer));
        let slowest = partners.map(|remote| remote.round).min();
        let others = slowest.unwrap_or(cx.round);
        let behind = others.since(cx.round);
        match self.queues && self.bounds.skip > 0 && behind >= u64::from(self.bounds.skip) {
            true => Round(others.0 - 1),
            false => cx.round,
        }
    }

    /// This peer's row of W. A topology gives columns: the weight of an answer is the share that
    /// its sender would push here.
    pub(super) fn find_row(&self, cx: &Context) -> BTreeMap<PeerId, f64> {
        let ranks = Ranks::live(cx);
        if self.bounds.syncs(cx.round) {
            let share = 1.0 / ranks.count() as f64;
            let others = (0..ranks.count()).filter_map(|rank| ranks.other(rank));
            return others.map(|peer| (peer, share)).collect();
        }
        let asked = ranks.partners(&*self.topology, cx).receive;
        let weight = |rank: usize| {
            let pushes = ranks.partners_of(rank, &*self.topology, cx).send;
            pushes.into_iter().find(|(to, _)| *to == ranks.me())
        };
        let row = asked.into_iter();
        row.filter_map(|rank| Some((ranks.other(rank)?, weight(rank)?.1)))
            .collect()
    }

    /// Waits for no more answers where enough are here, and no partner is too far behind.
    pub(super) fn leave_backup(&self, cx: &Context, mixes: &mut MixesOf<Self>) {
        if self.bounds.backup == 0 || self.bounds.syncs(cx.round) {
            return;
        }
        let enough = self.row.len().saturating_sub(self.bounds.backup as usize);
        let near = |peer: &PeerId| {
            let behind = cx
                .view
                .get(*peer)
                .map_or(0, |remote| cx.round.since(remote.round));
            behind < u64::from(self.bounds.lead)
        };
        for mix in mixes.iter_mut() {
            let answered = mix.own.len() + self.unchanged.len();
            if answered >= enough.max(1) && mix.expected.iter().all(near) {
                mix.expected.clear();
            }
        }
    }

    /// Asks one partner of the round.
    pub(super) fn ask_one(&self, cx: &mut Context, peer: PeerId) {
        let round = self.target;
        let message = match self.queues {
            true => PullMessage::AskSince {
                round,
                taken: self.taken.get(&peer).copied(),
            },
            false => PullMessage::Ask { round },
        };
        cx.send(peer, message);
    }

    /// Asks the partners of the round, and sets the timer to when they are asked again.
    pub(super) fn ask(&mut self, cx: &mut Context) {
        for peer in self.row.keys() {
            self.ask_one(cx, *peer);
        }
        if !self.row.is_empty() {
            let allowed = cx.deadlines.allow(Wait::Partners, self.row.keys().copied());
            self.deadline = cx.wait(Wait::Partners, allowed);
            self.asks_again = true;
            cx.timers.set(Timer::Exchange, cx.now + allowed / 2);
        }
    }

    /// What this peer's own parameters and the answers count in the mean of a round.
    ///
    /// Without queues an answer has its share of the row, and what did not come stays with this
    /// peer: `(1 - sum_j W_ij, W_ij)`. With queues an iterate u counts
    /// `W_iu (u.round - (k - s) + 1)` in round k, this peer's own included, and `Order::Mix` divides
    /// by the sum of what is there: Luo et al. 2019, section 4.4, with the row's shares for the
    /// paper's equal ones. An iterate of round k counts s + 1 times as much as one s rounds older;
    /// this peer's own counts nothing where it is older than that. With s = 0 it is the mean of what
    /// came of round k.
    pub(super) fn weights(
        &self,
        round: Round,
        answers: &BTreeMap<PeerId, (SliceId, f64)>,
    ) -> (f64, Vec<(SliceId, f64)>) {
        if !self.queues {
            let inputs: Vec<(SliceId, f64)> = answers.values().copied().collect();
            let taken: f64 = inputs.iter().map(|(_, weight)| weight).sum();
            return ((1.0 - taken).max(0.0), inputs);
        }
        let slack = u64::from(self.bounds.slack(self.target));
        let freshness = |of: Round| {
            let age = self.target.0.saturating_sub(of.0);
            (slack + 1).saturating_sub(age) as f64
        };
        let inputs = answers.values();
        let inputs = inputs.map(|(slice, share)| (*slice, share * freshness(slice.round)));
        let inputs = inputs.collect();
        let own = (1.0 - self.row.values().sum::<f64>()).max(0.0);
        (own * freshness(round), inputs)
    }
}
