//! What peers that begin a round with the same anchor must have alike.
//!
//! - Where inner steps or codec of a round follow from what members agree on: the same of both, by the same
//!   directives.
//! - Where contributions are admitted by their scores: the same ratings, also at those that were restarted, joined
//!   late or replayed rounds.

use murmurate_protocol::{Digest, Peer, Phase, Ratings, Round, Rung, SortedMap, StepBudget};

/// Number of rounds and anchors to remember. No peer may begin an older round.
const WINDOW: usize = 1024;

/// How a round begins: the round, the anchor, and what the owner has directed.
type Opening = (Round, Digest, Option<u32>);

/// Inner steps and codec of a round.
type Taken = (StepBudget, Option<Rung>);

/// What rounds take, by how they began.
#[derive(Debug, Default)]
pub(super) struct SameSteps(SortedMap<Opening, Taken>);

impl SameSteps {
    /// Checks a peer after an input.
    pub(super) fn check(&mut self, peer: &Peer) -> Result<(), String> {
        if peer.phase() != Phase::Train {
            return Ok(());
        }
        let directed = peer.in_force().training.inner_steps;
        let opening = (peer.round(), peer.digest(), directed);
        self.begun(opening, (peer.budget(), peer.chosen_codec()))
    }

    fn begun(&mut self, opening: Opening, taken: Taken) -> Result<(), String> {
        let known = *self.0.entry(opening).or_insert(taken);
        if self.0.len() > WINDOW {
            self.0.pop_first();
        }
        if known == taken {
            Ok(())
        } else {
            Err(format!(
                "takes {taken:?} in round {}, another with the same anchor {known:?}",
                opening.0
            ))
        }
    }
}

/// The ratings of rounds by how they began.
#[derive(Debug, Default)]
pub(super) struct SameRatings(SortedMap<(Round, Digest), Ratings>);

impl SameRatings {
    /// Checks a peer after an input.
    pub(super) fn check(&mut self, peer: &Peer) -> Result<(), String> {
        match peer.ratings() {
            Some(ratings) if peer.phase() == Phase::Train => {
                self.begun((peer.round(), peer.digest()), ratings)
            }
            _ => Ok(()),
        }
    }

    fn begun(&mut self, opening: (Round, Digest), ratings: &Ratings) -> Result<(), String> {
        let known = self.0.entry(opening).or_insert_with(|| ratings.clone());
        let same = known == ratings;
        if self.0.len() > WINDOW {
            self.0.pop_first();
        }
        if same {
            Ok(())
        } else {
            Err(format!(
                "rates others than another peer that began round {} with the same anchor",
                opening.0
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codec(tag: u8) -> Option<Rung> {
        Some(Rung {
            tag,
            ..Rung::default()
        })
    }

    #[test]
    fn a_peer_with_another_number_of_inner_steps_is_found() {
        let mut steps = SameSteps::default();
        let opening = |round, anchor: u8, directed| {
            (Round(round), Digest::from_bytes([anchor; 32]), directed)
        };
        for (opening, count, good) in [
            (opening(1, 1, None), 8, true),
            (opening(1, 1, None), 8, true),
            (opening(2, 1, None), 4, true),
            (opening(1, 2, None), 4, true),
            (opening(1, 1, Some(3)), 3, true),
            (opening(1, 1, None), 4, false),
        ] {
            let found = steps.begun(opening, (StepBudget::Steps(count), codec(0)));
            assert_eq!(found.is_ok(), good, "{opening:?} {count}");
        }
        let other = steps.begun(opening(2, 1, None), (StepBudget::Steps(4), codec(1)));
        assert!(other.is_err(), "another codec");
    }
}
