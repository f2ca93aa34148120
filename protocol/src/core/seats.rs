//! Who counts where members sign: those whose contributions are in the last rounds that had a result. All
//! members that apply a round see the same contributors, so they count the same seats, whichever links they
//! miss and whomever they have cut off.

use crate::limits::{GROUP_MEMBERS_MAX, LOST_MEMBER_WAIT};
use crate::sorted::SortedSet;
use crate::{PeerId, Round, Time};
use std::collections::VecDeque;

/// Rounds with a result for which a contribution gives its peer a seat, where members sign.
pub(crate) const SEAT_ROUNDS: usize = 8;

/// Seats that results may give.
pub(crate) const SEATS_MAX: usize = SEAT_ROUNDS * GROUP_MEMBERS_MAX;

/// Rounds after which a result says nothing of seats any more, because too many had none since.
const SEAT_AGE_MAX: u64 = 64;

/// The contributors of the last rounds that had a result.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    /// Oldest first; at most [`SEAT_ROUNDS`].
    rounds: VecDeque<(Round, SortedSet<PeerId>)>,
    noted: Time,
}

impl Seats {
    pub(crate) fn note(&mut self, now: Time, round: Round, contributors: SortedSet<PeerId>) {
        if self.rounds.back().is_some_and(|(last, _)| *last >= round) {
            return;
        }
        if self.rounds.len() == SEAT_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back((round, contributors));
        self.noted = now;
    }

    /// The contributors of the last rounds; none where the last result is too long ago to know.
    pub(crate) fn of(&self, round: Round) -> SortedSet<PeerId> {
        let recent = self
            .rounds
            .iter()
            .filter(|(noted, _)| round.since(*noted) <= SEAT_AGE_MAX);
        recent
            .flat_map(|(_, peers)| peers.iter().copied())
            .collect()
    }

    /// True once no round has had a result for [`LOST_MEMBER_WAIT`]: members without a link may be gone for good.
    pub(crate) fn stand_still(&self, now: Time) -> bool {
        now.since(self.noted) >= LOST_MEMBER_WAIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn peers(of: &[u8]) -> SortedSet<PeerId> {
        of.iter()
            .map(|byte| PeerId::from_bytes([*byte; 32]))
            .collect()
    }

    #[test]
    fn a_seat_lasts_for_some_results_and_not_longer() {
        let mut seats = Seats::default();
        assert!(seats.of(Round(0)).is_empty());
        seats.note(Time::ZERO, Round(0), peers(&[1, 2, 3]));
        for round in 1..SEAT_ROUNDS as u64 {
            seats.note(Time::ZERO, Round(round), peers(&[1, 2]));
            // A round that is noted twice counts once.
            seats.note(Time::ZERO, Round(round), peers(&[4]));
            assert_eq!(seats.of(Round(round + 1)), peers(&[1, 2, 3]));
        }
        let next = SEAT_ROUNDS as u64;
        seats.note(Time::ZERO, Round(next), peers(&[1, 2]));
        assert_eq!(seats.of(Round(next + 1)), peers(&[1, 2]));
        assert!(seats.of(Round(next + 1 + SEAT_AGE_MAX)).is_empty());
    }

    #[test]
    fn only_a_swarm_without_results_for_long_stands_still() {
        let mut seats = Seats::default();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert!(!seats.stand_still(at(59)) && seats.stand_still(at(60)));
        seats.note(at(60), Round(3), peers(&[1]));
        assert!(!seats.stand_still(at(119)) && seats.stand_still(at(120)));
    }
}
