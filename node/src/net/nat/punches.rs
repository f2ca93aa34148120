//! When to try again to punch a hole for a link that is still relayed.
//!
//! Pure but for `Instant`s that are passed in. DCUtR tries when a relayed connection begins, and
//! gives up for good when neither end's router let the other in; or at once when an end did not
//! know its own address yet. Another relayed connection makes it try again.

use libp2p::Multiaddr;
use libp2p::identity::PeerId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Pause after the first attempt that failed; doubled each time.
const PAUSE_MIN: Duration = Duration::from_secs(5);

/// No pause is longer: routers change, but not often.
const PAUSE_MAX: Duration = Duration::from_secs(900);

#[derive(Clone, Debug)]
struct Attempt {
    /// The circuit that was dialled.
    circuit: Multiaddr,
    failures: u32,
    /// `None` while one is under way.
    due: Option<Instant>,
}

/// The relayed links that this end dialled, and their next attempts. As many as there are links.
#[derive(Clone, Debug, Default)]
pub(super) struct Punches {
    attempts: BTreeMap<PeerId, Attempt>,
}

impl Punches {
    /// A link goes through a circuit that was dialled; the attempt that comes with it begins.
    pub(super) fn relayed(&mut self, peer: PeerId, circuit: Multiaddr) {
        let attempt = self.attempts.entry(peer).or_insert(Attempt {
            circuit: circuit.clone(),
            failures: 0,
            due: None,
        });
        attempt.circuit = circuit;
    }

    /// An attempt failed.
    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        if let Some(attempt) = self.attempts.get_mut(peer) {
            attempt.failures += 1;
            let doubled = PAUSE_MIN.saturating_mul(1 << (attempt.failures - 1).min(10));
            attempt.due = Some(now + doubled.min(PAUSE_MAX));
        }
    }

    /// The link is direct, or gone.
    pub(super) fn over(&mut self, peer: &PeerId) {
        self.attempts.remove(peer);
    }

    /// When the next attempt is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.attempts
            .values()
            .filter_map(|attempt| attempt.due)
            .min()
    }

    /// Circuits to dial now; their attempts are under way.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(PeerId, Multiaddr)> {
        let due = self
            .attempts
            .iter_mut()
            .filter(|(_, attempt)| attempt.due.is_some_and(|at| at <= now));
        due.map(|(peer, attempt)| {
            attempt.due = None;
            (*peer, attempt.circuit.clone())
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_come_again_after_growing_pauses_until_the_link_is_direct() {
        let now = Instant::now();
        let peer = PeerId::random();
        let circuit: Multiaddr = "/ip4/192.0.2.1/tcp/1/p2p-circuit".parse().unwrap();
        let mut punches = Punches::default();
        punches.failed(&peer, now);
        assert_eq!(punches.next_at(), None, "the end that dialled tries again");
        punches.relayed(peer, circuit.clone());
        assert_eq!(punches.next_at(), None);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            punches.failed(&peer, now);
            let at = punches.next_at().unwrap();
            assert!(punches.due(now).is_empty());
            assert_eq!(punches.due(at), [(peer, circuit.clone())]);
            assert!(punches.due(at).is_empty());
            pauses.push(at - now);
        }
        assert_eq!(pauses[..2], [PAUSE_MIN, 2 * PAUSE_MIN]);
        assert_eq!(pauses.last(), Some(&PAUSE_MAX));
        punches.failed(&peer, now);
        punches.over(&peer);
        assert_eq!(punches.next_at(), None);
    }
}
