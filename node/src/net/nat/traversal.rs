//! State of the network's task about routers: evidence of reachability, relays, and hole punching.

use super::behaviours;
use super::gaps::Gaps;
use super::reach::{Evidence, NatReport, Reachability, Serving};
use super::relays::Relays;
use crate::net::NetConfig;
use crate::net::bucket::doubled;
use crate::net::gate::Members;
use libp2p::Multiaddr;
use libp2p::identity::PeerId;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::SortedMap;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// State of the network's task about routers.
#[derive(Debug)]
pub(in crate::net) struct Traversal {
    pub(super) evidence: Evidence,
    pub(super) relays: Relays,
    pub(super) gaps: Gaps,
    pub(super) me: PeerId,
    pub(super) punches: Punches,
    pub(in crate::net) members: Members,
    /// Connections that only test whether a peer can be dialled. No link uses them.
    pub(super) probes: SortedMap<ConnectionId, PeerId>,
    pub(super) report: NatReport,
    pub(super) told: Option<NatReport>,
    pub(super) observed: Observed,
}

impl Traversal {
    /// Starts with the configuration's announced addresses.
    pub(in crate::net) fn new(config: &NetConfig, members: Members) -> Self {
        let report = NatReport {
            serving: behaviours::bounds(config).map(|_| Serving::default()),
            ..NatReport::default()
        };
        Self {
            evidence: Evidence::new(config.announce.clone()),
            relays: Relays::default(),
            gaps: Gaps::default(),
            me: config.identity.public().to_peer_id(),
            punches: Punches::default(),
            members,
            probes: SortedMap::new(),
            report,
            told: None,
            observed: Observed::default(),
        }
    }

    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        let all = [
            self.relays.next_at(),
            self.punches.next_at(),
            self.gaps.next_at(),
        ];
        all.into_iter().flatten().min()
    }

    pub(in crate::net) fn probing(&mut self, id: ConnectionId, peer: PeerId) {
        self.probes.insert(id, peer);
    }

    /// Removes a closed connection. Returns whether it was only a test.
    pub(in crate::net) fn probed(&mut self, id: ConnectionId) -> bool {
        self.probes.remove(&id).is_some()
    }

    /// Records that a link goes through a circuit that this end dialled.
    pub(in crate::net) fn relayed(&mut self, peer: PeerId, circuit: Multiaddr) {
        self.punches.relayed(peer, circuit);
    }

    /// Records that a link is direct, so it needs no hole punching and no other member. Returns whether
    /// one of these was under way.
    pub(in crate::net) fn direct(&mut self, peer: &PeerId) -> bool {
        self.punches.over(peer);
        self.gaps.over(peer)
    }

    /// Records that a link goes through a relay.
    pub(in crate::net) fn indirect(&mut self, peer: &PeerId) {
        self.relays.unlinked(peer);
        let first = self.me < *peer;
        self.gaps.relayed(peer, first, Instant::now());
    }

    /// Forgets a peer whose last connection is closed. `wanted` says whether that was not meant.
    pub(in crate::net) fn gone(&mut self, peer: &PeerId, wanted: bool) {
        self.punches.over(peer);
        self.relays.gone(peer);
        let now = Instant::now();
        if !wanted {
            self.gaps.over(peer);
        } else if !self.gaps.broken(peer, now) {
            self.gaps.lost(*peer, now);
        }
    }

    /// True where a circuit to this daemon is for everyone, and not only for the members that it cannot reach.
    pub(in crate::net) fn is_private(&self) -> bool {
        self.report.reach.state == Reachability::Private
    }

    /// True where this daemon tells those who reserve here at which addresses it can be dialled.
    pub(in crate::net) fn serves(&self) -> bool {
        self.report.serving.is_some()
    }
}

/// Addresses that are remembered. The oldest is forgotten first. DCUtR keeps the same number.
const OBSERVED_MAX: usize = 20;

/// The addresses at which others saw this daemon when it dialled from its listening port, as far as the swarm was
/// told of them.
///
/// If the observed port differs from the listening port, libp2p's identify reports the listening port instead. Behind
/// a router that assigns its own ports, such an address is useless: AutoNAT would test it, and DCUtR would offer it,
/// although no mapping exists for it.
#[derive(Debug, Default)]
pub(super) struct Observed(VecDeque<Multiaddr>);

impl Observed {
    /// Remembers an address. Returns whether the swarm is to be told of it.
    pub(super) fn is_new(&mut self, address: &Multiaddr) -> bool {
        if self.0.contains(address) {
            return false;
        }
        if self.0.len() == OBSERVED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(address.clone());
        true
    }
}

/// Pause after the first failed attempt; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(5);

/// The longest pause. Routers change, but rarely.
const PAUSE_MAX: Duration = Duration::from_secs(900);

#[derive(Clone, Debug)]
struct Attempt {
    circuit: Multiaddr,
    failures: u32,
    /// When to try again; `None` while an attempt runs.
    due: Option<Instant>,
}

/// The relayed links that this end dialled, with the next attempts at hole punching. Bounded by the number of links.
/// Reads no clock; callers pass the time.
///
/// DCUtR tries when a relayed connection begins. It gives up for good if neither router let the other end in, and at
/// once if an end did not yet know its own address. A new relayed connection makes it try again.
#[derive(Clone, Debug, Default)]
pub(super) struct Punches {
    attempts: SortedMap<PeerId, Attempt>,
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
            attempt.due = Some(now + doubled(PAUSE_MIN, PAUSE_MAX, attempt.failures));
        }
    }

    /// Removes a link that became direct or ended.
    pub(super) fn over(&mut self, peer: &PeerId) {
        self.attempts.remove(peer);
    }

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

    #[test]
    fn an_address_is_told_once_and_forgotten_when_twenty_others_came() {
        let address =
            |port: u16| -> Multiaddr { format!("/ip4/192.0.2.1/udp/{port}").parse().unwrap() };
        let mut observed = Observed::default();
        assert!(observed.is_new(&address(1)));
        assert!(!observed.is_new(&address(1)));
        for port in 2..2 + OBSERVED_MAX as u16 {
            assert!(observed.is_new(&address(port)));
        }
        assert_eq!(observed.0.len(), OBSERVED_MAX);
        assert!(observed.is_new(&address(1)));
    }
}
