//! All-reduce: whoever applied what a round decided holds the same bits as all others who did and
//! are still there.
//!
//! A peer whose round was void kept its anchor; it is not compared until it ends another round. What
//! only the dead had decided binds nobody: one that is left alone decides anew.

use murmurate_protocol::{Digest, Event, Round};
use std::collections::BTreeMap;

/// Rounds that are remembered: nobody may end an older one.
const WINDOW: usize = 256;

/// The digests that rounds ended with.
#[derive(Debug)]
pub(super) struct SameBits {
    digests: BTreeMap<Round, BTreeMap<usize, Digest>>,
    /// The last round that was void at a peer.
    voided: BTreeMap<usize, Round>,
}

impl SameBits {
    pub(super) const fn new() -> Self {
        Self {
            digests: BTreeMap::new(),
            voided: BTreeMap::new(),
        }
    }

    /// A peer is gone.
    pub(super) fn gone(&mut self, index: usize) {
        for ended in self.digests.values_mut() {
            ended.remove(&index);
        }
    }

    /// A peer gives a round up.
    pub(super) fn voided(&mut self, index: usize, round: Round) {
        self.voided.insert(index, round);
    }

    pub(super) fn check(&mut self, index: usize, event: &Event) -> Result<(), String> {
        let Event::RoundEnded { round, digest, .. } = event else {
            return Ok(());
        };
        if self.voided.get(&index) == Some(round) {
            return Ok(());
        }
        let ended = self.digests.entry(*round).or_default();
        let other = ended
            .iter()
            .find(|(peer, theirs)| **peer != index && *theirs != digest);
        let other = other.map(|(peer, theirs)| (*peer, *theirs));
        ended.insert(index, *digest);
        if self.digests.len() > WINDOW {
            self.digests.pop_first();
        }
        match other {
            None => Ok(()),
            Some((peer, theirs)) => Err(format!(
                "ended round {round} with {digest}, peer {peer} with {theirs}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_with_other_bits_is_found() {
        let ended = |round, byte| Event::RoundEnded {
            round: Round(round),
            digest: Digest::from_bytes([byte; 32]),
            seconds: 0.0,
        };
        let mut bits = SameBits::new();
        assert!(bits.check(0, &ended(0, 1)).is_ok());
        assert!(bits.check(0, &ended(1, 2)).is_ok());
        assert!(bits.check(0, &ended(0, 1)).is_ok());
        assert!(bits.check(1, &ended(1, 3)).is_err());
        bits.gone(0);
        assert!(bits.check(1, &ended(0, 4)).is_ok(), "the dead bind nobody");
    }
}
