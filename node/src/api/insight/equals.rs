//! Daemons that train exactly what this one trains: the same data in the same order, so that the run learns
//! nothing from one of the two.
//!
//! From one anchor the same batches lead to the same training loss, to the last bit; any other data lead to another
//! one. Daemons say their last loss with their vitals. This one compares it with its own of the same round: two
//! rounds with equal losses are no chance.

use crate::net::SeenVitals;
use murmurate_protocol::{Event, Phase, SortedMap};
use std::collections::VecDeque;

/// Rounds whose own loss is kept: more than end while vitals are on their way.
const ROUNDS_MAX: usize = 4096;

const PEERS_MAX: usize = 512;

#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    /// The number of its vitals that were looked at last.
    sequence: u64,
    /// The last round with a loss that equals this daemon's, and the loss.
    equal: Option<(u64, f32)>,
    /// The two rounds that say that it trains the same.
    rounds: Option<[u64; 2]>,
}

/// The losses of this daemon's last rounds, and which others have had the same.
#[derive(Clone, Debug, Default)]
pub struct Equals {
    own: VecDeque<(u64, f32)>,
    peers: SortedMap<String, Compared>,
}

impl Equals {
    /// The daemons that train the same as this one, by id in hexadecimal, each with two rounds that show it.
    pub fn all(&self) -> impl Iterator<Item = (&String, [u64; 2])> {
        let peers = self.peers.iter();
        peers.filter_map(|(peer, compared)| Some((peer, compared.rounds?)))
    }

    pub(super) fn observe(&mut self, event: &Event) {
        let Event::Trained { round, summary } = event else {
            return;
        };
        let loss = summary.loss as f32;
        // What went on with a round takes the place of its beginning.
        self.own.retain(|(known, _)| *known < round.0);
        // A loss of zero is that of every daemon that has learned its data by heart.
        if summary.steps > 0 && loss.is_finite() && loss != 0.0 {
            self.own.push_back((round.0, loss));
        }
        if self.own.len() > ROUNDS_MAX {
            self.own.pop_front();
        }
    }

    /// Looks at what others say of themselves. Gives back those of which it is news that they train the same.
    pub(crate) fn look(&mut self, seen: &[SeenVitals]) -> Vec<(String, [u64; 2])> {
        let here = |peer: &String| seen.iter().any(|seen| seen.vitals.peer.to_hex() == *peer);
        self.peers.retain(|peer, _| here(peer));
        let mut news = Vec::new();
        for seen in seen.iter().take(PEERS_MAX) {
            let vitals = &seen.vitals;
            let peer = vitals.peer.to_hex();
            let mut compared = self.peers.get(&peer).copied().unwrap_or_default();
            let newest = self.own.back().map(|(round, _)| *round);
            let Some(loss) = vitals.loss.filter(|_| newest >= Some(vitals.round.0)) else {
                // Its loss may be one of a round that this daemon has not trained yet.
                continue;
            };
            if compared.sequence == vitals.sequence || !takes_part(vitals.phase) {
                continue;
            }
            compared.sequence = vitals.sequence;
            let before = compared.rounds;
            compared.add(self.equal_to(vitals.round.0, loss), loss);
            if let Some(rounds) = compared.rounds.filter(|_| before.is_none()) {
                news.push((peer.clone(), rounds));
            }
            self.peers.insert(peer, compared);
        }
        news
    }

    /// The round with this loss here, for a daemon that is in a round: its last loss is of that round or of the
    /// one before. An error if this daemon trained neither.
    fn equal_to(&self, round: u64, loss: f32) -> Result<Option<u64>, NotTrained> {
        let rounds = round.saturating_sub(1)..=round;
        let newest_first = self.own.iter().rev();
        let mut own = newest_first
            .filter(|(known, _)| rounds.contains(known))
            .peekable();
        own.peek().ok_or(NotTrained)?;
        let equal = own.find(|(_, own)| own.to_bits() == loss.to_bits());
        Ok(equal.map(|(round, _)| *round))
    }
}

/// This daemon trained none of the rounds that a loss may be of.
struct NotTrained;

impl Compared {
    fn add(&mut self, equal: Result<Option<u64>, NotTrained>, loss: f32) {
        match (equal, self.equal) {
            (Err(NotTrained), _) => {}
            (Ok(None), _) => (self.equal, self.rounds) = (None, None),
            // One that does not change may be that of other data.
            (Ok(Some(round)), Some((first, before))) if before.to_bits() != loss.to_bits() => {
                self.rounds = self.rounds.or(Some([first, round]));
                self.equal = Some((round, loss));
            }
            (Ok(Some(round)), _) => self.equal = Some((round, loss)),
        }
    }
}

/// A daemon trains, in this phase or beside it.
const fn takes_part(phase: Phase) -> bool {
    use Phase::{Apply, Exchange, Settle, Train};
    matches!(phase, Train | Exchange | Apply | Settle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::vitals::Vitals;
    use murmurate_protocol::{PeerId, Round, TrainSummary};
    use std::time::Duration;

    fn trains(equals: &mut Equals, round: u64, loss: f64) {
        let summary = TrainSummary {
            steps: 8,
            loss,
            ..TrainSummary::default()
        };
        let round = Round(round);
        equals.observe(&Event::Trained { round, summary });
    }

    fn says(round: u64, loss: f64) -> SeenVitals {
        let vitals = Vitals {
            peer: PeerId::from_bytes([7; 32]),
            sequence: round,
            unix_ms: round,
            name: None,
            version: "1.0.0".to_owned(),
            round: Round(round),
            phase: Phase::Exchange,
            waiting: None,
            steps_per_s: None,
            loss: Vitals::loss(loss),
            accuracy: None,
            last_round: None,
            memory: None,
            saved_round: None,
        };
        SeenVitals {
            vitals,
            age: Duration::ZERO,
        }
    }

    /// Losses of a training that goes well.
    fn loss(round: u64) -> f64 {
        1.0 / (round as f64 + 3.0)
    }

    #[test]
    fn one_with_the_same_losses_in_two_rounds_trains_the_same() {
        let mut equals = Equals::default();
        (0..20).for_each(|round| trains(&mut equals, round, loss(round)));
        assert!(
            equals.look(&[says(3, loss(3))]).is_empty(),
            "once is chance"
        );
        assert!(
            equals.look(&[says(3, loss(3))]).is_empty(),
            "it says nothing new"
        );
        // It is in the training of round 9, and its last loss is that of round 8.
        let peer = PeerId::from_bytes([7; 32]).to_hex();
        let news = equals.look(&[says(9, loss(8))]);
        assert_eq!(news, [(peer.clone(), [3, 8])]);
        assert!(
            equals.look(&[says(12, loss(12))]).is_empty(),
            "it is no news"
        );
        assert_eq!(equals.all().collect::<Vec<_>>(), [(&peer, [3, 8])]);
        // It has other data now.
        assert!(equals.look(&[says(14, 0.3)]).is_empty());
        assert_eq!(equals.all().count(), 0);
        assert!(
            equals.look(&[says(15, loss(15))]).is_empty(),
            "two are needed again"
        );
        assert_eq!(equals.look(&[says(16, loss(16))]).len(), 1);
        assert!(equals.look(&[]).is_empty());
        assert_eq!(equals.all().count(), 0, "it is gone");
    }

    #[test]
    fn other_losses_those_of_other_rounds_and_one_that_stays_are_no_sign() {
        let others: [fn(u64) -> f64; 2] =
            [|round| loss(round) * (1.0 + 1e-6), |round| loss(round - 2)];
        for other in others {
            let mut equals = Equals::default();
            (0..20).for_each(|round| trains(&mut equals, round, loss(round)));
            (2..20).for_each(|round| assert!(equals.look(&[says(round, other(round))]).is_empty()));
        }
        let mut constant = Equals::default();
        (0..20).for_each(|round| trains(&mut constant, round, 0.125));
        (0..20).for_each(|round| assert!(constant.look(&[says(round, 0.125)]).is_empty()));
        let mut zero = Equals::default();
        (0..20).for_each(|round| trains(&mut zero, round, 0.0));
        (0..20).for_each(|round| assert!(zero.look(&[says(round, 0.0)]).is_empty()));
    }

    #[test]
    fn one_that_is_ahead_is_compared_once_this_daemon_is_as_far() {
        let mut equals = Equals::default();
        trains(&mut equals, 4, loss(4));
        assert!(equals.look(&[says(4, loss(4))]).is_empty());
        assert!(equals.look(&[says(6, loss(6))]).is_empty());
        trains(&mut equals, 5, loss(5));
        assert!(equals.look(&[says(6, loss(6))]).is_empty());
        trains(&mut equals, 6, loss(6));
        assert_eq!(equals.look(&[says(6, loss(6))]).len(), 1);
        // Rounds that this daemon took over from others say nothing.
        trains(&mut equals, 30, loss(30));
        assert!(equals.look(&[says(20, 0.7)]).is_empty());
        assert_eq!(equals.all().count(), 1);
    }
}
