//! What the network's task knows of the gate.

use super::membership::Membership;
use super::news;
use super::pending::PendingPeers;
use super::repeat::Repeat;
use crate::net::allowance::Allowances;
use crate::net::bucket::Budget;
use crate::net::handshakes::Unproven;
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
    pub(super) look_at: Instant,
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

    /// Whether it is time to look at the members.
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
