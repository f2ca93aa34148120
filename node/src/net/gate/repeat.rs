//! Tells the owner's directives again, to one linked peer after the other: a peer that has missed one would
//! pause, or train by other rules, without the others.

use murmurate_protocol::PeerId;
use std::time::Duration;
use tokio::time::Instant;

/// Time between two peers. Directives are 8 KiB at most.
const EVERY: Duration = Duration::from_secs(10);

/// Whom to tell next, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    at: Instant,
    last: Option<PeerId>,
}

impl Repeat {
    /// No one was told yet.
    pub(super) fn new() -> Self {
        Self {
            at: Instant::now() + EVERY,
            last: None,
        }
    }

    /// When the next peer is due.
    pub(super) const fn at(&self) -> Instant {
        self.at
    }

    /// The next one of these peers, if it is due.
    pub(super) fn next(&mut self, now: Instant, peers: &[PeerId]) -> Option<PeerId> {
        if now < self.at {
            return None;
        }
        self.at = now + EVERY;
        let last = self.last;
        let behind = peers
            .iter()
            .filter(|peer| last.is_none_or(|last| **peer > last));
        self.last = behind.min().or(peers.iter().min()).copied();
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_its_turn() {
        let mut repeat = Repeat::new();
        let peers = [3, 1, 2].map(|n| PeerId::from_bytes([n; 32]));
        let start = repeat.at();
        assert_eq!(repeat.next(start - EVERY, &peers), None);
        let turns = (0..4).map(|n| repeat.next(start + n * EVERY, &peers));
        let turns: Vec<u8> = turns
            .map(|peer| peer.expect("a peer").as_bytes()[0])
            .collect();
        assert_eq!(turns, [1, 2, 3, 1]);
        assert_eq!(repeat.next(start + 9 * EVERY, &[]), None);
    }
}
