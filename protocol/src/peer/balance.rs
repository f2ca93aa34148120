//! Rounds that end at the same time on unequal machines ([`Pace::Balanced`]).
//!
//! A peer learns two times for one sample. Its own comes from its training. Another peer's comes
//! from that peer's `Ready`, which names its samples and arrives when its training has ended. So no
//! further message is needed, and each peer chooses its inner steps alone:
//! `H_i = H t_fastest / t_i`, where t is the time for one sample. The fastest peer takes all H inner
//! steps, and the others take as many as fit into its time.
//!
//! The choice depends on speeds and not on what others chose. If each peer only followed the last
//! round's waits, equal peers whose times vary would all become shorter from round to round.
//!
//! Nothing of this is in a checkpoint: a peer that restarts takes all H inner steps until it has
//! measured again.

use crate::exchange::{AgreedMessage, ExchangeMessage, FormingMessage};
use crate::limits::{BALANCED_ROUNDS, BALANCED_SHARE, VIEW_PEERS_MAX};
use crate::peer::Peer;
use crate::{Pace, PeerId, Round, StepBudget, Time, TrainSummary};
use std::collections::{BTreeMap, VecDeque};

/// What a peer has measured of its own training and of others'.
#[derive(Debug, Default)]
pub(super) struct Balance {
    /// The round that is trained, and when its training began here.
    began: Option<(Round, Time)>,
    own: Times,
    others: BTreeMap<PeerId, Times>,
}

/// Seconds for one sample in the last rounds of one peer.
#[derive(Debug, Default)]
struct Times {
    round: Round,
    last: VecDeque<f64>,
}

impl Times {
    /// Notes a round, once. Zero, infinite and missing times say nothing.
    fn add(&mut self, round: Round, seconds: f64, samples: f64) {
        let time = seconds / samples;
        let again = self.round == round && !self.last.is_empty();
        if again || !time.is_finite() || time <= 0.0 {
            return;
        }
        self.round = round;
        if self.last.len() == BALANCED_ROUNDS {
            self.last.pop_front();
        }
        self.last.push_back(time);
    }

    /// The median of these rounds.
    fn usual(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.last.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

impl Balance {
    /// Inner steps of this peer's next round: at most `most`, and at least its share of them. As
    /// many as fit into the time of the fastest of `others`, without the `liars` fastest: of those
    /// that are left, at least one tells the truth or is slower than one that does.
    fn steps(&self, most: u32, liars: usize, others: impl Iterator<Item = PeerId>) -> u32 {
        let times = others.filter_map(|peer| self.others.get(&peer)?.usual());
        let mut times: Vec<f64> = times.collect();
        times.sort_unstable_by(f64::total_cmp);
        let (Some(own), Some(fastest)) = (self.own.usual(), times.get(liars)) else {
            return most;
        };
        // A quotient of two positive numbers: the cast saturates.
        let fit = (f64::from(most) * (fastest / own)).round() as u32;
        fit.clamp(most.div_ceil(BALANCED_SHARE), most)
    }

    /// Forgets peers that have not been measured for long.
    fn prune(&mut self, now: Round) {
        let kept = 2 * BALANCED_ROUNDS as u64;
        self.others
            .retain(|_, times| now.since(times.round) <= kept);
    }
}

impl Peer {
    /// How much to train in the round that begins, given the plan's budget.
    pub(super) fn balanced(&mut self, budget: StepBudget) -> StepBudget {
        let StepBudget::Steps(most) = budget else {
            return budget;
        };
        if self.cx.plan.synchronization.pace != Pace::Balanced {
            return budget;
        }
        self.balance.prune(self.cx.round);
        self.balance.began = Some((self.cx.round, self.cx.now));
        let live = self.cx.view.live();
        let live: Vec<PeerId> = live.map(|(peer, _)| peer).collect();
        let liars = self.cx.plan.liars_of(live.len() + 1);
        StepBudget::Steps(self.balance.steps(most, liars, live.into_iter()))
    }

    /// This peer's training of the round ended.
    pub(super) fn balance_own(&mut self, summary: &TrainSummary) {
        let round = self.cx.round;
        if let Some((_, began)) = self.balance.began.filter(|(of, _)| *of == round) {
            let seconds = self.cx.now.since(began).as_secs_f64();
            self.balance.own.add(round, seconds, summary.samples as f64);
        }
    }

    /// Another peer says that it has trained. Its message was half a round trip under way.
    pub(super) fn balance_other(&mut self, from: PeerId, message: &ExchangeMessage) {
        let ExchangeMessage::Agreed(AgreedMessage::Forming(message)) = message else {
            return;
        };
        let (of, samples) = match message {
            FormingMessage::Ready { round, weight, .. } => (*round, *weight),
            FormingMessage::SignedReady { round, seat, .. } => (*round, seat.weight),
            _ => return,
        };
        let Some((_, began)) = self.balance.began.filter(|(round, _)| *round == of) else {
            return;
        };
        let rtt = self.cx.view.get(from).and_then(|remote| remote.rtt);
        let took = self.cx.now.since(began);
        let took = took.saturating_sub(rtt.unwrap_or_default() / 2);
        let others = &mut self.balance.others;
        if others.contains_key(&from) || others.len() < VIEW_PEERS_MAX {
            let times = others.entry(from).or_default();
            times.add(of, took.as_secs_f64(), samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(index: u8) -> PeerId {
        PeerId::from_bytes([index; 32])
    }

    /// A peer that takes `own` seconds for a sample, beside others with these times.
    fn balance(own: f64, others: &[f64]) -> Balance {
        let mut balance = Balance::default();
        balance.own.add(Round(0), own, 1.0);
        for (index, time) in others.iter().enumerate() {
            let times = balance.others.entry(peer(index as u8)).or_default();
            times.add(Round(0), *time, 1.0);
        }
        balance
    }

    fn steps(balance: &Balance, liars: usize) -> u32 {
        let all: Vec<PeerId> = balance.others.keys().copied().collect();
        balance.steps(64, liars, all.into_iter())
    }

    #[test]
    fn a_peer_takes_what_fits_into_the_time_of_the_fastest() {
        assert_eq!(steps(&balance(2.0, &[1.0, 3.0]), 0), 32);
        assert_eq!(steps(&balance(1.5, &[3.0, 1.0]), 0), 43);
        // The fastest, and those that have measured nothing yet.
        assert_eq!(steps(&balance(1.0, &[2.0, 3.0]), 0), 64);
        assert_eq!(steps(&balance(1.0, &[]), 0), 64);
        assert_eq!(steps(&Balance::default(), 0), 64);
    }

    #[test]
    fn no_peer_takes_less_than_its_share() {
        assert_eq!(steps(&balance(1e9, &[1e-9]), 0), 64 / BALANCED_SHARE);
        let few = balance(1e9, &[1e-9]);
        for most in 1..=BALANCED_SHARE {
            assert_eq!(few.steps(most, 0, [peer(0)].into_iter()), 1);
        }
    }

    #[test]
    fn liars_that_say_they_are_fast_shorten_no_round() {
        let lying = balance(1.0, &[1e-6, 1e-6, 0.8, 1.0, 1.0, 1.2]);
        assert_eq!(steps(&lying, 2), 51);
        assert_eq!(steps(&lying, 0), 64 / BALANCED_SHARE);
    }

    #[test]
    fn one_odd_round_changes_nothing_and_a_new_speed_counts_soon() {
        let mut times = Times::default();
        for round in 0..20 {
            let odd = round % 7 == 6;
            times.add(Round(round), if odd { 9.0 } else { 1.0 }, 1.0);
        }
        assert_eq!(times.usual(), Some(1.0));
        for round in 20..20 + BALANCED_ROUNDS.div_ceil(2) as u64 {
            times.add(Round(round), 2.0, 1.0);
        }
        assert_eq!(times.usual(), Some(2.0));
        // Repeated, empty and absurd statements are not counted.
        for (round, seconds, samples) in [(23, 5.0, 1.0), (24, 1.0, 0.0), (25, 0.0, 3.0)] {
            times.add(Round(round), seconds, samples);
        }
        assert_eq!(
            (times.round, times.last.len()),
            (Round(23), BALANCED_ROUNDS)
        );
    }

    #[test]
    fn peers_that_are_gone_are_forgotten() {
        let mut balance = balance(2.0, &[1.0]);
        balance.prune(Round(2 * BALANCED_ROUNDS as u64));
        assert_eq!(steps(&balance, 0), 32);
        balance.prune(Round(2 * BALANCED_ROUNDS as u64 + 1));
        assert_eq!(balance.others.len(), 0);
    }
}
