//! What the network's task knows of the gate, and whom to tell the owner's directives again.

use super::membership::Membership;
use super::news;
use super::pending::PendingPeers;
use crate::net::bucket::Budget;
use crate::net::unproven::{Allowances, Unproven};
use libp2p::Stream;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::WireVersions;
use murmurate_trust::{Chain, Role, Roles};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Streams of one peer's news that wait until another one of that peer was read: several things may be new
/// within a second.
const NEWS_WAITING_MAX: usize = 8;

/// Time between two looks at the members: how long a link may outlive a certificate.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The gate of this daemon.
#[derive(Debug)]
pub(in crate::net) struct Gate {
    /// Connections that have not passed yet.
    pub(in crate::net) pending: PendingPeers,
    /// What connections over TCP may bring that have not passed.
    pub(super) allowances: Allowances,
    pub(super) membership: Arc<Membership>,
    /// The versions of the wire that this daemon speaks.
    pub(super) wire: WireVersions,
    /// The certificates of the peers that have passed.
    pub(super) chains: BTreeMap<PeerId, Chain>,
    /// Peers whose news are being read, with their streams that wait for that.
    pub(super) telling: BTreeMap<PeerId, VecDeque<Stream>>,
    /// What peers may send in news.
    pub(super) budget: Budget,
    pub(super) repeat: Repeat,
    /// When to look at the members again.
    look_at: Instant,
    /// Peers whose register is another, so that they are told ours.
    pub(super) to_tell: BTreeSet<PeerId>,
}

impl Gate {
    /// A gate that no one has come to.
    pub(in crate::net) fn new(
        membership: Arc<Membership>,
        wire: WireVersions,
        unproven: Unproven,
    ) -> Self {
        Self {
            pending: PendingPeers::new(unproven.places),
            allowances: unproven.allowances,
            membership,
            wire,
            chains: BTreeMap::new(),
            telling: BTreeMap::new(),
            budget: news::budget(),
            repeat: Repeat::new(),
            look_at: Instant::now() + LOOK_EVERY,
            to_tell: BTreeSet::new(),
        }
    }

    /// When something of it is due.
    pub(in crate::net) fn next_at(&self) -> Option<Instant> {
        let own = self.repeat.at().min(self.look_at);
        let pending = self.pending.next_at();
        Some(pending.map_or(own, |at| at.min(own)))
    }

    /// Due every ten seconds.
    pub(super) fn looks(&mut self, now: Instant) -> bool {
        let due = self.look_at <= now;
        if due {
            self.look_at = now + LOOK_EVERY;
        }
        due
    }

    /// The role in the certificate that a peer has shown. A peer without one takes no part.
    pub(in crate::net) fn role_of(&self, peer: &PeerId) -> Role {
        let roles = self.chains.get(peer).and_then(Chain::roles);
        roles.and_then(Roles::role).unwrap_or(Role::Relay)
    }

    /// A peer tells news on a stream. Returns the stream if it can be read at once; one at a time is.
    pub(super) fn tells(&mut self, peer: PeerId, stream: Stream) -> Option<Stream> {
        let Some(waiting) = self.telling.get_mut(&peer) else {
            self.telling.insert(peer, VecDeque::new());
            return Some(stream);
        };
        // What more streams would tell is told when the registers are compared.
        if waiting.len() < NEWS_WAITING_MAX {
            waiting.push_back(stream);
        }
        None
    }

    /// A stream of news has ended. Returns the next one of the peer.
    pub(super) fn told(&mut self, peer: &PeerId) -> Option<Stream> {
        let next = self.telling.get_mut(peer)?.pop_front();
        if next.is_none() {
            self.telling.remove(peer);
        }
        next
    }
}

/// Time between two peers. Directives are 8 KiB at most.
const EVERY: Duration = Duration::from_secs(10);

/// Tells the owner's directives again, to one linked peer after the other: a peer that has missed one would pause, or
/// train by other rules, without the others.
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
