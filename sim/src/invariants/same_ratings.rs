//! Rounds that admit contributions by their scores: peers that begin a round with the same anchor hold the same
//! ratings, also those that were restarted, joined late or replayed rounds.

use murmurate_protocol::{Digest, Peer, Phase, Ratings, Round};
use std::collections::BTreeMap;

/// Number of rounds and anchors to remember. No peer may begin an older round.
const WINDOW: usize = 1024;

/// The ratings of rounds by how they began.
#[derive(Debug, Default)]
pub(super) struct SameRatings(BTreeMap<(Round, Digest), Ratings>);

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
        match same {
            true => Ok(()),
            false => Err(format!(
                "rates others than another peer that began round {} with the same anchor",
                opening.0
            )),
        }
    }
}
