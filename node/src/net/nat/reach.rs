//! Determines whether others can dial this daemon.
//!
//! Pure: it turns evidence into a verdict and sends no requests.

use crate::net::record::{is_global, is_relayed};
use libp2p::Multiaddr;
use murmurate_protocol::{PeerId, SortedMap};
use std::fmt;

/// Addresses whose tests are remembered. The oldest test is forgotten first.
const TESTED_MAX: usize = 32;

/// How others reach this daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// Others can dial it.
    Public,
    /// Others reach it only through a relay or hole punching.
    Private,
    /// No peer has tried yet.
    #[default]
    Unknown,
}

impl Reachability {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Public, Self::Private, Self::Unknown];

    /// The name in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Reachability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A verdict with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The verdict.
    pub state: Reachability,
    /// The evidence behind the verdict, as text.
    pub reason: String,
    /// The address that the verdict is about.
    pub address: Option<Multiaddr>,
}

#[derive(Clone, Debug)]
struct Test {
    number: u64,
    by: String,
    failed: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    announced: Option<Vec<Multiaddr>>,
    tests: SortedMap<Multiaddr, Test>,
    tested: u64,
    /// An address at which a peer dialled this daemon without being asked, and that peer.
    dialled: Option<(Multiaddr, String)>,
}

impl Evidence {
    /// Starts with the addresses that the configuration announces.
    pub(super) fn new(announced: Option<Vec<Multiaddr>>) -> Self {
        Self {
            announced,
            ..Self::default()
        }
    }

    /// Adds the result of a test: peer `by` dialled this daemon at `address` on request. Returns
    /// false, and ignores the result, if the address goes through a relay, because every daemon can
    /// be dialled through a relay.
    pub(super) fn tested(
        &mut self,
        address: Multiaddr,
        by: String,
        failed: Option<String>,
    ) -> bool {
        if is_relayed(&address) {
            return false;
        }
        if self.tests.len() >= TESTED_MAX && !self.tests.contains_key(&address) {
            let first = self.tests.iter().min_by_key(|(_, test)| test.number);
            if let Some(first) = first.map(|(address, _)| address.clone()) {
                self.tests.remove(&first);
            }
        }
        self.tested += 1;
        let number = self.tested;
        self.tests.insert(address, Test { number, by, failed });
        true
    }

    /// Records that peer `by` dialled this daemon at `address` without being asked.
    pub(super) fn dialled(&mut self, address: Multiaddr, by: String) {
        self.dialled.get_or_insert((address, by));
    }

    /// The verdict from the evidence, in this order.
    ///
    /// - Announced addresses are trusted.
    /// - A test at a global address outweighs tests at private addresses, since a neighbour may
    ///   reach a daemon that others cannot reach.
    /// - At addresses of one kind a success outweighs failures, since some tested addresses are
    ///   guesses.
    /// - A dial without request counts least, since a router admits peers that its owner contacted
    ///   before.
    pub(super) fn verdict(&self) -> Reach {
        if let Some(address) = self.announced.as_ref().and_then(|all| all.first()) {
            return Reach {
                state: Reachability::Public,
                reason: "the configuration announces it".to_owned(),
                address: Some(address.clone()),
            };
        }
        let of = |global: bool| {
            self.tests
                .iter()
                .filter(move |(a, _)| is_global(a) == global)
        };
        let judged = [true, false].into_iter().find_map(|global| {
            let newest = |failed: bool| {
                of(global)
                    .filter(|(_, test)| test.failed.is_some() == failed)
                    .max_by_key(|(_, test)| test.number)
            };
            newest(false).or_else(|| newest(true))
        });
        if let Some((address, test)) = judged {
            return of_test(address, test);
        }
        if let Some((address, by)) = &self.dialled {
            return Reach {
                state: Reachability::Public,
                reason: format!("peer {by} dialled it"),
                address: Some(address.clone()),
            };
        }
        let (state, reason) = match self.announced {
            Some(_) => (Reachability::Private, "the configuration announces nothing"),
            None => (Reachability::Unknown, "no peer was asked to dial it yet"),
        };
        Reach {
            state,
            reason: reason.to_owned(),
            address: None,
        }
    }
}

fn of_test(address: &Multiaddr, test: &Test) -> Reach {
    let by = &test.by;
    let (state, reason) = match &test.failed {
        None => (
            Reachability::Public,
            format!("peer {by} was asked to dial it and did (AutoNAT)"),
        ),
        Some(failed) => (
            Reachability::Private,
            format!("peer {by} was asked to dial it and could not: {failed} (AutoNAT)"),
        ),
    };
    Reach {
        state,
        reason,
        address: Some(address.clone()),
    }
}

/// Current load of a daemon that relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// Peers that are reachable through it.
    pub reservations: u64,
    /// Open circuits through it.
    pub circuits: u64,
    /// Requests refused since the start.
    pub refused: u64,
}

/// Reachability of a daemon, its relays and the results of hole punching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatReport {
    /// How others reach it, with the reason.
    pub reach: Reach,
    /// Relays through which others reach it.
    pub relays: Vec<PeerId>,
    /// The load of its relay, if it relays for others.
    pub serving: Option<Serving>,
    /// Successful attempts at hole punching.
    pub punched: u64,
    /// Failed attempts at hole punching.
    pub punches_failed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::multiaddr::Protocol;

    fn at(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    fn test(evidence: &mut Evidence, address: &str, failed: bool) {
        let failed = failed.then(|| "no answer".to_owned());
        evidence.tested(at(address), "ab".to_owned(), failed);
    }

    #[test]
    fn beyond_a_relay_every_peer_can_be_dialled() {
        let mut evidence = Evidence::new(None);
        let relay = libp2p::PeerId::random();
        let circuit = at("/ip4/203.0.113.7/udp/1/quic-v1")
            .with(Protocol::P2p(relay))
            .with(Protocol::P2pCircuit);
        assert!(!evidence.tested(circuit, "ab".to_owned(), None));
        assert_eq!(state(&evidence), Reachability::Unknown);
    }

    fn state(evidence: &Evidence) -> Reachability {
        evidence.verdict().state
    }

    #[test]
    fn what_is_announced_is_believed() {
        let address = at("/ip4/203.0.113.7/udp/1/quic-v1");
        let mut told = Evidence::new(Some(vec![address.clone()]));
        test(&mut told, "/ip4/203.0.113.7/udp/2/quic-v1", true);
        let verdict = told.verdict();
        assert_eq!(verdict.state, Reachability::Public);
        assert_eq!(verdict.address, Some(address));
        assert_eq!(
            state(&Evidence::new(Some(Vec::new()))),
            Reachability::Private
        );
        assert_eq!(state(&Evidence::new(None)), Reachability::Unknown);
    }

    #[test]
    fn a_neighbours_success_does_not_outweigh_the_internets_failure() {
        let mut evidence = Evidence::new(None);
        test(&mut evidence, "/ip4/192.168.1.2/udp/1/quic-v1", false);
        assert_eq!(state(&evidence), Reachability::Public);
        test(&mut evidence, "/ip4/203.0.113.7/udp/1/quic-v1", true);
        assert_eq!(state(&evidence), Reachability::Private);
        assert!(evidence.verdict().reason.contains("no answer"));
        test(&mut evidence, "/ip4/203.0.113.7/udp/50001/quic-v1", false);
        assert_eq!(state(&evidence), Reachability::Public);
        test(&mut evidence, "/ip4/203.0.113.7/udp/2/quic-v1", true);
        assert_eq!(state(&evidence), Reachability::Public);
    }

    #[test]
    fn a_dial_of_ones_own_accord_counts_least() {
        let mut evidence = Evidence::new(None);
        evidence.dialled(at("/ip4/203.0.113.7/udp/1/quic-v1"), "cd".to_owned());
        assert_eq!(evidence.verdict().reason, "peer cd dialled it");
        test(&mut evidence, "/ip4/10.0.0.1/udp/1/quic-v1", true);
        assert_eq!(state(&evidence), Reachability::Private);
    }

    #[test]
    fn the_tests_are_bounded_and_the_newest_stay() {
        let mut evidence = Evidence::new(None);
        test(&mut evidence, "/ip4/203.0.113.7/udp/9/quic-v1", false);
        for port in 0..TESTED_MAX {
            test(
                &mut evidence,
                &format!("/ip4/203.0.113.7/udp/{}/quic-v1", 100 + port),
                true,
            );
        }
        assert_eq!(evidence.tests.len(), TESTED_MAX);
        assert_eq!(state(&evidence), Reachability::Private);
    }
}
