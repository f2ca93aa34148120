//! What a peer measures of its own training, of others' and of exchanges, for paces and codecs that follow from it.
//!
//! Nothing of this is in a checkpoint: a peer that restarts takes all inner steps and claims no wait until it has
//! measured again.

use crate::core::context::Context;
use crate::exchange::{AgreedMessage, ExchangeMessage, FormingMessage};
use crate::limits::{BALANCED_ROUNDS, BALANCED_SHARE, VIEW_PEERS_MAX};
use crate::plan::Tolerance;
use crate::sorted::{SortedMap, SortedSet};
use crate::{Loss, Pace, PeerId, Round, StepBudget, Time, TrainSummary};
use core::time::Duration;
use std::collections::VecDeque;

/// What a peer has measured of its last rounds.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    balance: Balance,
    waits: Waits,
}

impl Pacer {
    /// A round begins: how much of the rest of its budget this peer trains.
    pub(super) fn begin(&mut self, cx: &Context, rest: StepBudget) -> StepBudget {
        if measures_waits(cx) {
            self.waits.begin(cx.round, cx.now);
        }
        let StepBudget::Steps(most) = rest else {
            return rest;
        };
        if cx.plan.synchronization.pace != Pace::Balanced {
            return rest;
        }
        self.balance.begin(cx.round, cx.now);
        let live: Vec<PeerId> = cx.view.live().map(|(peer, _)| peer).collect();
        let tolerance = cx.plan.tolerance(live.len() + 1);
        StepBudget::Steps(self.balance.steps(most, tolerance, live.into_iter()))
    }

    /// This peer has trained. It claims a loss, or a wait; without samples it claims nothing.
    pub(super) fn trained(&mut self, cx: &mut Context, summary: &TrainSummary) {
        let (round, now) = (cx.round, cx.now);
        self.balance.own(round, now, summary.samples);
        cx.data.loss = match cx.directed.configured() {
            _ if summary.samples == 0 => None,
            (_, Pace::Loss { .. }) => Some(Loss::of(summary.loss)),
            _ if measures_waits(cx) => {
                self.waits.trained(round, now, summary.steps);
                self.waits.last.median().map(Loss::of)
            }
            _ => None,
        };
    }

    /// Another peer says that it has trained. Its message was half a round trip under way.
    pub(super) fn heard(&mut self, cx: &Context, from: PeerId, message: &ExchangeMessage) {
        let ExchangeMessage::Agreed(AgreedMessage::Forming(message)) = message else {
            return;
        };
        let (round, samples) = match message {
            FormingMessage::Ready { round, said, .. } => {
                self.waits.other(from, *round, cx.now);
                (*round, said.weight)
            }
            FormingMessage::SignedReady { round, seat, .. } => (*round, seat.weight),
            _ => return,
        };
        let rtt = cx.view.get(from).and_then(|remote| remote.rtt);
        let latency = rtt.unwrap_or_default() / 2;
        self.balance.other(from, round, cx.now, latency, samples);
    }

    /// The round is over, and its result in force.
    pub(super) fn ended(&mut self, now: Time) {
        self.waits.ended(now);
    }

    /// Rounds have another codec: waits that were measured say nothing of them.
    pub(super) fn forget_waits(&mut self) {
        self.waits.all_trained = None;
        self.waits.last.0.clear();
    }
}

/// Set where this peer measures how long the round's exchange holds training up. Waits under a codec of the owner
/// say nothing of those that the members choose from.
fn measures_waits(cx: &Context) -> bool {
    let chooses = cx.plan.chooses_codecs();
    let by_pace = matches!(cx.directed.configured(), (_, Pace::Measured { .. }));
    let own = chooses && cx.directed.in_force.training.codec.is_some();
    (chooses || by_pace) && !own
}

/// Measurements of the last rounds.
#[derive(Debug, Default)]
struct Recent(VecDeque<f64>);

impl Recent {
    fn add(&mut self, measured: f64) {
        if self.0.len() == BALANCED_ROUNDS {
            self.0.pop_front();
        }
        self.0.push_back(measured);
    }

    fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.0.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

/// Rounds that end at the same time on unequal machines ([`Pace::Balanced`]).
///
/// A peer learns two times for one sample. Its own comes from its training. Another peer's comes
/// from that peer's `Ready`, which names its samples and arrives when its training has ended. So no
/// further message is needed, and each peer chooses its inner steps alone:
/// `H_i = H t_fastest / t_i`, where t is the time for one sample. The fastest peer takes all H inner
/// steps, and the others take as many as fit into its time.
///
/// The choice depends on speeds and not on what others chose. If each peer only followed the last
/// round's waits, equal peers whose times vary would all become shorter from round to round.
#[derive(Debug, Default)]
struct Balance {
    began: Option<(Round, Time)>,
    own: Times,
    others: SortedMap<PeerId, Times>,
}

/// Seconds for one sample in the last rounds of one peer.
#[derive(Debug, Default)]
struct Times {
    round: Round,
    last: Recent,
}

impl Times {
    /// Notes a round, once. Zero, infinite and missing times say nothing.
    fn add(&mut self, round: Round, seconds: f64, samples: f64) {
        let time = seconds / samples;
        // A message that comes twice would count its round twice in the median.
        let again = self.round == round && !self.last.0.is_empty();
        if again || !time.is_finite() || time <= 0.0 {
            return;
        }
        self.round = round;
        self.last.add(time);
    }
}

impl Balance {
    fn begin(&mut self, round: Round, now: Time) {
        self.began = Some((round, now));
        // Forgets peers that have not been measured for long.
        let kept = 2 * BALANCED_ROUNDS as u64;
        self.others
            .retain(|_, times| round.since(times.round) <= kept);
    }

    fn own(&mut self, round: Round, now: Time, samples: u64) {
        if let Some((_, began)) = self.began.filter(|(of, _)| *of == round) {
            let seconds = now.since(began).as_secs_f64();
            self.own.add(round, seconds, samples as f64);
        }
    }

    /// Another peer has trained a round on these samples, and its message was this long under way.
    fn other(&mut self, peer: PeerId, round: Round, now: Time, latency: Duration, samples: f64) {
        let Some((_, began)) = self.began.filter(|(of, _)| *of == round) else {
            return;
        };
        if self.others.contains_key(&peer) || self.others.len() < VIEW_PEERS_MAX {
            let took = now.since(began).saturating_sub(latency);
            let times = self.others.entry(peer).or_default();
            times.add(round, took.as_secs_f64(), samples);
        }
    }

    /// Inner steps of the next round, at most `most`: as many as fit into the time of the fastest
    /// of `others` that is credible, and at least a share.
    fn steps(&self, most: u32, tolerance: Tolerance, others: impl Iterator<Item = PeerId>) -> u32 {
        let times = others.filter_map(|peer| self.others.get(&peer)?.last.median());
        let mut times: Vec<f64> = times.collect();
        times.sort_unstable_by(f64::total_cmp);
        // The fastest that liars cannot have made up: a time too short would end training for all.
        let (Some(own), Some(fastest)) = (self.own.last.median(), tolerance.credible(&times))
        else {
            return most;
        };
        // A quotient of two positive numbers: the cast saturates.
        let fit = (f64::from(most) * (fastest / own)).round() as u32;
        fit.clamp(most.div_ceil(BALANCED_SHARE), most)
    }
}

/// How long exchanges hold training up, for [`Pace::Measured`] and for the choice of a codec
/// ([`Ladder`](crate::Ladder)).
///
/// An exchange counts from the moment in which all have trained until its result is in force. Before that a
/// peer waits for slower ones, and more inner steps would not shorten that wait.
#[derive(Debug, Default)]
struct Waits {
    began: Option<(Round, Time)>,
    /// When the last of those that were heard of has trained, and the seconds of an inner step here.
    all_trained: Option<(Time, f64)>,
    /// Who said that it has trained this round.
    heard: SortedSet<PeerId>,
    /// Waits in inner steps.
    last: Recent,
}

impl Waits {
    fn begin(&mut self, round: Round, now: Time) {
        self.began = Some((round, now));
        self.all_trained = None;
        self.heard.clear();
    }

    fn trained(&mut self, round: Round, now: Time, steps: u64) {
        let began = self.began.filter(|(of, _)| *of == round && steps > 0);
        self.all_trained = began.and_then(|(_, began)| {
            let step = now.since(began).as_secs_f64() / steps as f64;
            (step > 0.0).then_some((now, step))
        });
    }

    /// Another peer says that it has trained a round. A repetition replaces a lost message or is about
    /// another group, and tells nothing of its training.
    fn other(&mut self, peer: PeerId, round: Round, now: Time) {
        let this_round = self.began.is_some_and(|(of, _)| of == round);
        let room = self.heard.len() < VIEW_PEERS_MAX;
        if this_round
            && room
            && self.heard.insert(peer)
            && let Some((last, _)) = &mut self.all_trained
        {
            *last = now;
        }
    }

    /// The round is over, and its result in force.
    fn ended(&mut self, now: Time) {
        self.began = None;
        let Some((all, step)) = self.all_trained.take() else {
            return;
        };
        self.last.add(now.since(all).as_secs_f64() / step);
    }
}

#[cfg(test)]
mod balance_tests {
    use super::*;
    use crate::id::tests::peer;

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

    fn steps(balance: &Balance, liars: u16) -> u32 {
        let all: Vec<PeerId> = balance.others.keys().copied().collect();
        balance.steps(64, Tolerance::of(liars, 64), all.into_iter())
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
            assert_eq!(few.steps(most, Tolerance::NONE, [peer(0)].into_iter()), 1);
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
        assert_eq!(times.last.median(), Some(1.0));
        for round in 20..20 + BALANCED_ROUNDS.div_ceil(2) as u64 {
            times.add(Round(round), 2.0, 1.0);
        }
        assert_eq!(times.last.median(), Some(2.0));
        // Repeated, empty and absurd statements are not counted.
        for (round, seconds, samples) in [(23, 5.0, 1.0), (24, 1.0, 0.0), (25, 0.0, 3.0)] {
            times.add(Round(round), seconds, samples);
        }
        assert_eq!(
            (times.round, times.last.0.len()),
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

#[cfg(test)]
mod waits_tests {
    use super::*;
    use crate::id::tests::peer;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Eight inner steps of 10 ms; the slowest has trained after 100 ms; the result is there at `end`.
    fn round(waits: &mut Waits, number: u64, end: u64) {
        let (start, round) = (1_000 * number, Round(number));
        waits.begin(round, at(start));
        waits.other(peer(1), round, at(start + 60));
        waits.trained(round, at(start + 80), 8);
        waits.other(peer(2), round, at(start + 100));
        // Said again, or of another round.
        waits.other(peer(2), round, at(start + 110));
        waits.other(peer(3), Round(number + 1), at(start + 110));
        waits.ended(at(start + end));
    }

    #[test]
    fn a_wait_counts_from_when_all_have_trained() {
        let mut waits = Waits::default();
        assert_eq!(waits.last.median(), None);
        round(&mut waits, 1, 150);
        assert_eq!(waits.last.median(), Some(5.0));
        for number in 2..5 {
            round(&mut waits, number, 300);
        }
        // One round is no reason.
        round(&mut waits, 5, 900);
        assert_eq!(waits.last.median(), Some(20.0));
        for number in 6..20 {
            round(&mut waits, number, 120);
        }
        assert_eq!(
            (waits.last.median(), waits.last.0.len()),
            (Some(2.0), BALANCED_ROUNDS)
        );
    }

    #[test]
    fn what_was_not_trained_here_says_nothing() {
        let mut waits = Waits::default();
        waits.begin(Round(1), at(0));
        waits.ended(at(10));
        waits.begin(Round(2), at(10));
        waits.trained(Round(3), at(20), 8);
        waits.ended(at(30));
        waits.begin(Round(4), at(30));
        waits.trained(Round(4), at(30), 8);
        waits.ended(at(40));
        waits.begin(Round(5), at(40));
        waits.trained(Round(5), at(50), 0);
        waits.ended(at(60));
        waits.trained(Round(5), at(70), 3);
        waits.ended(at(80));
        assert_eq!(waits.last.median(), None);
    }
}
