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

use crate::limits::{BALANCED_ROUNDS, BALANCED_SHARE, VIEW_PEERS_MAX};
use crate::{PeerId, Round, Time};
use core::time::Duration;
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
    /// The training of a round begins.
    pub(super) fn begin(&mut self, round: Round, now: Time) {
        self.began = Some((round, now));
        // Forgets peers that have not been measured for long.
        let kept = 2 * BALANCED_ROUNDS as u64;
        self.others
            .retain(|_, times| round.since(times.round) <= kept);
    }

    /// This peer has trained a round on these samples.
    pub(super) fn own(&mut self, round: Round, now: Time, samples: u64) {
        if let Some((_, began)) = self.began.filter(|(of, _)| *of == round) {
            let seconds = now.since(began).as_secs_f64();
            self.own.add(round, seconds, samples as f64);
        }
    }

    /// Another peer has trained a round on these samples, and its message was this long under way.
    pub(super) fn other(
        &mut self,
        peer: PeerId,
        round: Round,
        (now, latency): (Time, Duration),
        samples: f64,
    ) {
        let Some((_, began)) = self.began.filter(|(of, _)| *of == round) else {
            return;
        };
        if self.others.contains_key(&peer) || self.others.len() < VIEW_PEERS_MAX {
            let took = now.since(began).saturating_sub(latency);
            let times = self.others.entry(peer).or_default();
            times.add(round, took.as_secs_f64(), samples);
        }
    }

    /// Inner steps of this peer's next round: at most `most`, and at least its share of them. As
    /// many as fit into the time of the fastest of `others`, without the `liars` fastest: the next is no
    /// faster than a peer that tells the truth.
    pub(super) fn steps(
        &self,
        most: u32,
        liars: usize,
        others: impl Iterator<Item = PeerId>,
    ) -> u32 {
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
        balance.begin(Round(2 * BALANCED_ROUNDS as u64), Time::ZERO);
        assert_eq!(steps(&balance, 0), 32);
        balance.begin(Round(2 * BALANCED_ROUNDS as u64 + 1), Time::ZERO);
        assert_eq!(balance.others.len(), 0);
    }
}
