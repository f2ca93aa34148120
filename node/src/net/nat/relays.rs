//! Chooses where to reserve: the known relays, the reservations, and when to ask again.
//!
//! Reads no clock; callers pass the time.

use libp2p::Multiaddr;
use libp2p::core::transport::ListenerId;
use libp2p::identity::PeerId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Reservations that a daemon holds. With two, it stays reachable if one relay goes away.
const RESERVED_MAX: usize = 2;

/// Number of relays that are remembered.
const KNOWN_MAX: usize = 64;

/// Pause after a relay refused or went away; it doubles with each further failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Due(Instant),
    Asked(ListenerId),
    Reserved(ListenerId),
}

impl Stage {
    fn listener(self) -> Option<ListenerId> {
        match self {
            Self::Asked(listener) | Self::Reserved(listener) => Some(listener),
            Self::Due(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
struct Known {
    address: Multiaddr,
    stage: Stage,
    failures: u32,
}

/// All known relays.
#[derive(Clone, Debug, Default)]
pub(super) struct Relays {
    known: BTreeMap<PeerId, Known>,
    /// Whether this daemon needs relays.
    needed: bool,
}

impl Relays {
    /// Adds a connected peer that offers to relay.
    pub(super) fn offered(&mut self, peer: PeerId, address: Multiaddr, now: Instant) {
        if self.known.contains_key(&peer) || self.known.len() >= KNOWN_MAX {
            return;
        }
        let stage = Stage::Due(now);
        let known = Known {
            address,
            stage,
            failures: 0,
        };
        self.known.insert(peer, known);
    }

    /// Forgets a peer whose last connection is closed, unless it holds a reservation.
    pub(super) fn gone(&mut self, peer: &PeerId) {
        if self
            .known
            .get(peer)
            .is_some_and(|known| known.stage.listener().is_none())
        {
            self.known.remove(peer);
        }
    }

    /// Sets whether relays are needed. If not, returns the listeners of the reservations to give
    /// up.
    pub(super) fn need(&mut self, needed: bool, now: Instant) -> Vec<ListenerId> {
        self.needed = needed;
        if needed {
            return Vec::new();
        }
        let held = self.known.values_mut().filter_map(|known| {
            let listener = known.stage.listener()?;
            known.stage = Stage::Due(now);
            Some(listener)
        });
        held.collect()
    }

    /// The relays to ask now.
    pub(super) fn due(&self, now: Instant) -> Vec<(PeerId, Multiaddr)> {
        let due = self
            .known
            .iter()
            .filter(|(_, known)| matches!(known.stage, Stage::Due(at) if at <= now));
        let due = due.map(|(peer, known)| (*peer, known.address.clone()));
        due.take(self.room()).collect()
    }

    /// When the next request is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let due = self.known.values().filter_map(|known| match known.stage {
            Stage::Due(at) => Some(at),
            _ => None,
        });
        due.min().filter(|_| self.room() > 0)
    }

    /// Records that a relay was asked. `listener` will report the result.
    pub(super) fn asked(&mut self, peer: &PeerId, listener: ListenerId) {
        if let Some(known) = self.known.get_mut(peer) {
            known.stage = Stage::Asked(listener);
        }
    }

    /// Records that a relay could not be asked.
    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        if let Some(known) = self.known.get_mut(peer) {
            known.failures += 1;
            let doubled = PAUSE_MIN.saturating_mul(1 << (known.failures - 1).min(10));
            known.stage = Stage::Due(now + doubled.min(PAUSE_MAX));
        }
    }

    /// Records that a relay accepted the reservation.
    pub(super) fn reserved(&mut self, peer: &PeerId) {
        if let Some(known) = self.known.get_mut(peer)
            && let Some(listener) = known.stage.listener()
        {
            known.stage = Stage::Reserved(listener);
            known.failures = 0;
        }
    }

    /// Records that a listener ended. Returns its relay, if it was for one.
    pub(super) fn closed(&mut self, listener: ListenerId, now: Instant) -> Option<PeerId> {
        let found = self
            .known
            .iter()
            .find(|(_, known)| known.stage.listener() == Some(listener));
        let peer = found.map(|(peer, _)| *peer)?;
        self.failed(&peer, now);
        Some(peer)
    }

    /// The relay that was asked at this address.
    pub(super) fn at(&self, address: &Multiaddr) -> Option<PeerId> {
        let found = self
            .known
            .iter()
            .find(|(_, known)| known.address == *address);
        found.map(|(peer, _)| *peer)
    }

    /// The relays with a reservation of this daemon.
    pub(super) fn holding(&self) -> impl Iterator<Item = PeerId> {
        let held = self
            .known
            .iter()
            .filter(|(_, known)| matches!(known.stage, Stage::Reserved(_)));
        held.map(|(peer, _)| *peer)
    }

    fn room(&self) -> usize {
        let busy = self
            .known
            .values()
            .filter(|known| known.stage.listener().is_some());
        match self.needed {
            true => RESERVED_MAX.saturating_sub(busy.count()),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers<const N: usize>() -> [PeerId; N] {
        std::array::from_fn(|_| PeerId::random())
    }

    fn at() -> Multiaddr {
        "/ip4/192.0.2.1/udp/1/quic-v1".parse().unwrap()
    }

    #[test]
    fn two_relays_are_asked_when_they_are_needed() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let all = peers::<3>();
        for peer in all {
            relays.offered(peer, at(), now);
        }
        assert!(relays.due(now).is_empty() && relays.next_at().is_none());
        assert!(relays.need(true, now).is_empty());
        let due = relays.due(now);
        assert_eq!(due.len(), RESERVED_MAX);
        for (peer, _) in &due {
            relays.asked(peer, ListenerId::next());
        }
        assert!(relays.due(now).is_empty() && relays.next_at().is_none());
        relays.reserved(&due[0].0);
        assert_eq!(relays.holding().collect::<Vec<_>>(), [due[0].0]);
        assert!(relays.at(&at()).is_some() && relays.at(&Multiaddr::empty()).is_none());
        assert_eq!(relays.need(false, now).len(), RESERVED_MAX);
        assert_eq!(relays.holding().count(), 0);
    }

    #[test]
    fn a_relay_that_refuses_is_asked_again_after_growing_pauses() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let [peer] = peers();
        relays.offered(peer, at(), now);
        relays.need(true, now);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let listener = ListenerId::next();
            relays.asked(&peer, listener);
            assert_eq!(relays.closed(listener, now), Some(peer));
            pauses.push(relays.next_at().unwrap() - now);
        }
        assert_eq!(pauses[..3], [PAUSE_MIN, 2 * PAUSE_MIN, 4 * PAUSE_MIN]);
        assert_eq!(pauses.last(), Some(&PAUSE_MAX));
        assert_eq!(relays.closed(ListenerId::next(), now), None);
        relays.gone(&peer);
        assert_eq!(relays.next_at(), None);
    }

    #[test]
    fn a_reservation_outlives_the_link_and_what_is_known_is_bounded() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let [peer] = peers();
        relays.offered(peer, at(), now);
        relays.need(true, now);
        relays.asked(&peer, ListenerId::next());
        relays.reserved(&peer);
        relays.gone(&peer);
        assert_eq!(relays.holding().count(), 1);
        for peer in peers::<100>() {
            relays.offered(peer, at(), now);
        }
        assert_eq!(relays.known.len(), KNOWN_MAX);
    }
}
