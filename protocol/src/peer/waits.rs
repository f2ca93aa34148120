//! How long exchanges hold training up, as a peer measures it for [`Pace::Measured`](crate::Pace::Measured) and
//! for the choice of a codec ([`Ladder`](crate::Ladder)).
//!
//! An exchange counts from the moment in which all have trained until its result is in force. Before that a
//! peer waits for slower ones, and more inner steps would not shorten that wait.

use crate::limits::{BALANCED_ROUNDS, VIEW_PEERS_MAX};
use crate::{PeerId, Round, Time};
use std::collections::{BTreeSet, VecDeque};

/// What a peer has measured of its last rounds.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The round, and when its training began here.
    began: Option<(Round, Time)>,
    /// When the last of those that were heard of has trained, and the seconds of an inner step here.
    all_trained: Option<(Time, f64)>,
    /// Who said that it has trained this round.
    heard: BTreeSet<PeerId>,
    /// Waits in inner steps.
    last: VecDeque<f64>,
}

impl Waits {
    /// The training of a round begins.
    pub(super) fn begin(&mut self, round: Round, now: Time) {
        self.began = Some((round, now));
        self.all_trained = None;
        self.heard.clear();
    }

    /// This peer has trained the round.
    pub(super) fn trained(&mut self, round: Round, now: Time, steps: u64) {
        let began = self.began.filter(|(of, _)| *of == round && steps > 0);
        self.all_trained = began.and_then(|(_, began)| {
            let step = now.since(began).as_secs_f64() / steps as f64;
            (step > 0.0).then_some((now, step))
        });
    }

    /// Another peer says that it has trained a round. What it says a second time was lost on the way or is
    /// about another group, and tells nothing of its training.
    pub(super) fn other(&mut self, peer: PeerId, round: Round, now: Time) {
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
    pub(super) fn ended(&mut self, now: Time) {
        self.began = None;
        let Some((all, step)) = self.all_trained.take() else {
            return;
        };
        if self.last.len() == BALANCED_ROUNDS {
            self.last.pop_front();
        }
        self.last.push_back(now.since(all).as_secs_f64() / step);
    }

    /// Rounds have another codec: what was measured says nothing of them.
    pub(super) fn forget(&mut self) {
        self.all_trained = None;
        self.last.clear();
    }

    /// The median of the last rounds, in inner steps of this peer.
    pub(super) fn usual(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.last.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn peer(index: u8) -> PeerId {
        PeerId::from_bytes([index; 32])
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
        assert_eq!(waits.usual(), None);
        round(&mut waits, 1, 150);
        assert_eq!(waits.usual(), Some(5.0));
        for number in 2..5 {
            round(&mut waits, number, 300);
        }
        // One round is no reason.
        round(&mut waits, 5, 900);
        assert_eq!(waits.usual(), Some(20.0));
        for number in 6..20 {
            round(&mut waits, number, 120);
        }
        assert_eq!(
            (waits.usual(), waits.last.len()),
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
        assert_eq!(waits.usual(), None);
    }
}
