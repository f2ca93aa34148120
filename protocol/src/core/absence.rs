//! Members that say that they take part and contribute nothing: after some rounds the others go on
//! without them, and give them another chance less and less often.

use crate::Round;
use crate::limits::{
    ABSENCE_MAX, ABSENCE_ROUNDS_MAX, AWAY_ROUNDS_MAX, CHANCE_ROUNDS, RETURN_ROUNDS,
};

/// Decided rounds of the last 16 that it may miss, in a row or not, before they go on without it.
const ABSENCE_MISSED_MAX: u32 = 9;

/// A peer's absences from recent rounds, and how often they cost it its seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absence {
    /// The last 16 decided rounds in which the peer should have taken part, the newest in the lowest bit:
    /// one where it contributed nothing.
    missed: u16,
    /// How often it has lost its seat.
    losses: u32,
    /// Without a seat: the round from which it is given another chance, and its contributions since.
    away: Option<(Round, u32)>,
}

impl Absence {
    pub(crate) fn is_away(&self, round: Round) -> bool {
        self.away.is_some_and(|(back, _)| round < back)
    }

    pub(crate) fn has_a_chance(&self, round: Round) -> bool {
        self.away.is_some_and(|(back, _)| round >= back)
    }

    fn is_over(&self, round: Round) -> bool {
        let last = |back: Round| round.since(back) + 1 >= CHANCE_ROUNDS;
        self.away
            .is_some_and(|(back, _)| round >= back && last(back))
    }

    /// A round was decided without the peer. Gives the round of the next chance, if this one ends.
    pub(crate) fn pass(&mut self, round: Round) -> Option<Round> {
        self.is_over(round).then(|| self.lose(round))
    }

    /// A round was decided in which the peer should have come. Gives the round of its next chance,
    /// if it missed too many: in a row, or, where a `share` is asked for, of the last ones.
    pub(crate) fn note(&mut self, round: Round, came: bool, share: bool) -> Option<Round> {
        match (&mut self.away, came) {
            (None, true) => self.missed <<= 1,
            (Some((_, contributions)), true) => {
                *contributions += 1;
                if *contributions >= RETURN_ROUNDS {
                    // It has contributed often enough to be one of those that are waited for.
                    (self.away, self.missed) = (None, 0);
                }
            }
            // It is not waited for, so not coming is no absence.
            (Some((back, _)), false) if round < *back => {}
            (_, false) => {
                self.missed = self.missed << 1 | 1;
                let too_many = self.missed.trailing_ones() >= ABSENCE_ROUNDS_MAX
                    || (share && self.missed.count_ones() >= ABSENCE_MISSED_MAX);
                // Another chance ends with the first absence.
                if self.away.is_some() || too_many {
                    return Some(self.lose(round));
                }
            }
        }
        None
    }

    fn lose(&mut self, round: Round) -> Round {
        let rounds = (AWAY_ROUNDS_MAX >> ABSENCE_MAX) << self.losses.min(ABSENCE_MAX);
        // Peers that have seen another number of absences agree on every second chance.
        let after = round.0.saturating_add(rounds / 2 + 1);
        let back = Round(after.checked_next_multiple_of(rounds).unwrap_or(u64::MAX));
        self.losses += 1;
        (self.away, self.missed) = (Some((back, 0)), 0);
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rounds in which a peer is waited for that contributes in some rounds.
    fn waited(rounds: u64, comes: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut absence = Absence::default();
        let mut waited = Vec::new();
        for round in 0..rounds {
            if !absence.is_away(Round(round)) {
                waited.push(round);
                absence.note(Round(round), comes(round), true);
            }
        }
        waited
    }

    #[test]
    fn a_silent_peer_is_waited_for_less_and_less_often() {
        let waited = waited(4000, |_| false);
        assert_eq!(waited[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(waited[8..14], [16, 32, 64, 128, 256, 512]);
        // At most every 512 rounds in the end.
        assert_eq!(waited[14..17], [1024, 1536, 2048]);
    }

    #[test]
    fn a_seat_costs_about_half_of_the_rounds() {
        assert_eq!(waited(200, |_| true).len(), 200);
        assert_eq!(waited(200, |round| round % 2 == 0).len(), 200);
        assert_eq!(waited(200, |round| round % 5 < 3).len(), 200);
        // In one round of seven: it is away after ten rounds, and less and less often waited for.
        let rare = waited(2000, |round| round % 7 == 6);
        assert_eq!(rare[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(rare.len() < 200, "{}", rare.len());
    }

    #[test]
    fn a_peer_returns_after_two_contributions() {
        // It is absent in rounds 0 to 7 and away until 16. From then on it comes.
        let mut absence = Absence::default();
        let lost: Vec<_> = (0..8)
            .filter_map(|r| absence.note(Round(r), false, true))
            .collect();
        assert_eq!(lost, [Round(16)]);
        assert!(absence.is_away(Round(15)) && !absence.is_away(Round(16)));
        assert_eq!(absence.note(Round(16), true, true), None);
        assert!(absence.away.is_some());
        assert_eq!(absence.note(Round(17), true, true), None);
        assert_eq!(absence.away, None);
        // As a member it may be absent again, but the next loss lasts for longer.
        let lost: Vec<_> = (18..26)
            .filter_map(|r| absence.note(Round(r), false, true))
            .collect();
        assert_eq!(lost, [Round(48)]);
        // One contribution and an absence are no return.
        assert_eq!(absence.note(Round(48), true, true), None);
        assert_eq!(absence.note(Round(49), false, true), Some(Round(96)));
    }

    #[test]
    fn a_chance_ends_after_some_rounds_though_the_peer_was_not_ready() {
        let mut absence = Absence::default();
        assert_eq!(absence.pass(Round(3)), None);
        let lost = (0..8).filter_map(|r| absence.note(Round(r), false, true));
        assert_eq!(lost.count(), 1);
        assert!(!absence.has_a_chance(Round(15)) && absence.has_a_chance(Round(16)));
        let over: Vec<_> = (8..20).filter_map(|r| absence.pass(Round(r))).collect();
        assert_eq!(over, [Round(32)]);
        assert!(absence.is_away(Round(20)));
    }

    #[test]
    fn a_contribution_while_away_counts_and_an_absence_does_not() {
        let mut absence = Absence::default();
        let lost = (0..8).filter_map(|r| absence.note(Round(r), false, true));
        assert_eq!(lost.count(), 1);
        assert_eq!(absence.note(Round(9), false, true), None);
        absence.note(Round(10), true, true);
        absence.note(Round(11), true, true);
        assert!(!absence.is_away(Round(12)));
    }
}
