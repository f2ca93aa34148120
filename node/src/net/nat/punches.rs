//! Schedules further attempts at hole punching for links that are still relayed.
//!
//! Reads no clock; callers pass the time. DCUtR tries when a relayed connection begins. It gives up
//! for good if neither router let the other end in, and at once if an end did not yet know its own
//! address. A new relayed connection makes it try again.

use libp2p::Multiaddr;
use libp2p::identity::PeerId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Pause after the first failed attempt; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(5);

/// The longest pause. Routers change, but rarely.
const PAUSE_MAX: Duration = Duration::from_secs(900);

#[derive(Clone, Debug)]
struct Attempt {
    /// The address of the circuit.
    circuit: Multiaddr,
    failures: u32,
    /// When to try again; `None` while an attempt runs.
    due: Option<Instant>,
}

/// The relayed links that this end dialled, with their next attempts. Bounded by the number of
/// links.
#[derive(Clone, Debug, Default)]
pub(super) struct Punches {
    attempts: BTreeMap<PeerId, Attempt>,
}

impl Punches {
    /// Adds a link through a circuit that this end dialled. DCUtR's first attempt begins with it.
    pub(super) fn relayed(&mut self, peer: PeerId, circuit: Multiaddr) {
        let attempt = self.attempts.entry(peer).or_insert(Attempt {
            circuit: circuit.clone(),
            failures: 0,
            due: None,
        });
        attempt.circuit = circuit;
    }

    /// Schedules the next attempt after a failed one.
    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        if let Some(attempt) = self.attempts.get_mut(peer) {
            attempt.failures += 1;
            let doubled = PAUSE_MIN.saturating_mul(1 << (attempt.failures - 1).min(10));
            attempt.due = Some(now + doubled.min(PAUSE_MAX));
        }
    }

    /// Removes a link that became direct or ended.
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

    /// The circuits to dial now. Their attempts count as running.
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
