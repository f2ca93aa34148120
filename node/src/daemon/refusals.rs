//! Limits the lines about peers that do not fit: another run on the same network finds this daemon
//! again and again.

use murmurate_protocol::PeerId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between two lines about one peer.
const AGAIN: Duration = Duration::from_secs(3600);

/// Peers of whom lines speak within that time. A stranger can have any number of identities.
const PEERS_MAX: usize = 16;

/// The peers that the operator has been told about, and when.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<PeerId, Instant>);

impl Refusals {
    /// Whether a line about this peer is due.
    pub(super) fn tell(&mut self, peer: PeerId, now: Instant) -> bool {
        self.0.retain(|_, told| now.duration_since(*told) < AGAIN);
        if self.0.len() >= PEERS_MAX || self.0.contains_key(&peer) {
            return false;
        }
        self.0.insert(peer, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_peer_and_hour_and_few_in_all() {
        let mut refusals = Refusals::default();
        let now = Instant::now();
        let peer = |id| PeerId::from_bytes([id; 32]);
        assert!(refusals.tell(peer(0), now));
        assert!(!refusals.tell(peer(0), now + Duration::from_secs(3599)));
        assert!(refusals.tell(peer(0), now + AGAIN));
        let told = (1..=255).filter(|id| refusals.tell(peer(*id), now + AGAIN));
        assert_eq!(told.count(), PEERS_MAX - 1);
    }
}
