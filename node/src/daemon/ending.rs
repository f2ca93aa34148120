//! The daemon's end: whether it has come, the reason, and what to tell the operator.

use crate::daemon::elsewhere::Elsewhere;
use crate::daemon::refusals::Refusals;
use crate::daemon::{DaemonError, RefusedBy};
use crate::net::{GateError, from_libp2p};
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use murmurate_protocol::PeerId;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long the network may take to end.
pub(super) const SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// Refusals by other peers that are kept for the final error.
const REFUSALS_MAX: usize = 16;

/// The peers at the addresses to join, and which of them have refused this one.
#[derive(Debug, Default)]
pub(super) struct Join {
    /// Those that an address names and that have not refused yet.
    left: BTreeSet<PeerId>,
    /// Addresses without a peer's id.
    unnamed: usize,
    refusals: BTreeSet<PeerId>,
}

impl Join {
    /// No peer has refused yet.
    pub(super) fn new(addresses: &[Multiaddr]) -> Self {
        let named = |address: &Multiaddr| match address.iter().last() {
            Some(Protocol::P2p(peer)) => from_libp2p(&peer),
            _ => None,
        };
        let left: Vec<_> = addresses.iter().map(named).collect();
        Self {
            unnamed: left.iter().filter(|peer| peer.is_none()).count(),
            left: left.into_iter().flatten().collect(),
            refusals: BTreeSet::new(),
        }
    }

    /// Whether there was no peer to join.
    fn is_empty(&self) -> bool {
        self.left.is_empty() && self.unnamed == 0 && self.refusals.is_empty()
    }

    /// Notes a refusal. Returns whether none of the peers to join is left. Others, such as daemons of
    /// another run on the same network, may refuse as they like.
    fn refused(&mut self, peer: PeerId) -> bool {
        let named = self.left.remove(&peer);
        if !named && self.refusals.len() < REFUSALS_MAX {
            self.refusals.insert(peer);
        }
        let unnamed = self.unnamed > 0 && self.refusals.len() >= self.unnamed;
        self.left.is_empty() && (unnamed || (self.unnamed == 0 && named))
    }
}

/// What is known about the daemon's end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The peers to join.
    pub(super) join: Join,
    /// Daemons of other runs that the operator was told of.
    pub(super) strangers: BTreeSet<PeerId>,
    /// Whether the operator was told that members refuse this daemon.
    pub(super) told_refusal: bool,
    /// Whether the peer has left. Then the driver's loop ends.
    pub(super) left: bool,
    /// The error that ended the daemon, if any.
    pub(super) error: Option<DaemonError>,
    /// Peers that refused this one, or that this one refused.
    pub(super) refused: Vec<RefusedBy>,
    /// The peers about whose refusal the operator was told.
    pub(super) told: Refusals,
    /// Whether any peer of the run was ever linked.
    pub(super) met_anyone: bool,
    /// The addresses to join that did not answer, with the reasons.
    pub(super) bootstrap: Option<String>,
    /// The failure because of which the peer left.
    pub(super) stopped: Option<String>,
    /// Why the last checkpoint was not written.
    pub(super) unsaved: Option<String>,
    /// How often the operator asked the daemon to leave.
    pub(super) interrupts: u32,
    /// Another daemon with this one's identity.
    pub(super) elsewhere: Elsewhere,
}

impl Ending {
    /// Ends the daemon with an error.
    pub(super) fn fail(&mut self, error: DaemonError) {
        self.error = Some(error);
        self.left = true;
    }

    /// Sets the error for a join that timed out: no peer with a state answered.
    pub(super) fn join_failed(&mut self) {
        self.error = Some(match self.refused.first() {
            Some(refused) => refused.clone().into(),
            None => DaemonError::Unreachable {
                bootstrap: self.bootstrap.clone(),
            },
        });
    }

    /// Whether a daemon of another run is one that the operator has not been told of. While this
    /// daemon has met no other, it may be one that it looks for.
    pub(super) fn is_new_stranger(&mut self, peer: PeerId) -> bool {
        !self.met_anyone
            && self.join.is_empty()
            && self.strangers.len() < REFUSALS_MAX
            && self.strangers.insert(peer)
    }

    /// Whether a member refuses this daemon, and the operator has not been told so.
    pub(super) fn is_new_refusal(&mut self, error: GateError) -> bool {
        matches!(error, GateError::Refused(_)) && !std::mem::replace(&mut self.told_refusal, true)
    }

    /// Stores that a peer did not let this one in, or is of another run.
    pub(super) fn turned_away(&mut self, peer: PeerId, error: GateError, still_joins: bool) {
        let certain = error != GateError::Broken;
        if certain && self.join.refused(peer) && !self.met_anyone && still_joins {
            self.fail(DaemonError::TurnedAway { peer, error });
        }
    }

    /// Stores a refusal. `still_joins` tells that this peer has not taken part in a round yet.
    pub(super) fn refused(&mut self, refused: RefusedBy, still_joins: bool) {
        // If all peers to join refuse this one, waiting longer does not help.
        if self.join.refused(refused.peer) && !self.met_anyone && still_joins {
            self.fail(refused.clone().into());
        }
        if self.refused.len() < REFUSALS_MAX {
            self.refused.push(refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{address_with_peer, to_libp2p};
    use libp2p::identity::Keypair;
    use murmurate_protocol::wire::Reason;

    fn peer() -> PeerId {
        from_libp2p(&Keypair::generate_ed25519().public().to_peer_id()).unwrap()
    }

    fn ending(named: &[PeerId], unnamed: usize) -> Ending {
        let address: Multiaddr = "/ip4/192.0.2.1/udp/4001/quic-v1".parse().unwrap();
        let mut addresses = vec![address.clone(); unnamed];
        for peer in named {
            addresses.push(address_with_peer(address.clone(), to_libp2p(peer).unwrap()));
        }
        Ending {
            join: Join::new(&addresses),
            ..Ending::default()
        }
    }

    fn refuse(ending: &mut Ending, peer: PeerId) -> bool {
        let reason = Reason::OtherRun;
        ending.refused(RefusedBy::new(peer, reason), true);
        ending.left
    }

    #[test]
    fn a_daemon_ends_only_when_all_peers_to_join_have_refused_it() {
        let (a, b, stranger) = (peer(), peer(), peer());
        let mut two = ending(&[a, b], 0);
        assert!(!refuse(&mut two, stranger));
        assert!(!refuse(&mut two, a));
        assert!(!refuse(&mut two, a));
        assert!(!refuse(&mut two, stranger));
        assert!(refuse(&mut two, b));

        let mut unnamed = ending(&[a], 1);
        assert!(!refuse(&mut unnamed, a));
        assert!(refuse(&mut unnamed, b));
        assert!(!refuse(&mut ending(&[], 0), stranger));
    }

    #[test]
    fn a_daemon_that_has_met_a_peer_goes_on() {
        let a = peer();
        let mut ending = ending(&[a], 0);
        ending.met_anyone = true;
        assert!(!refuse(&mut ending, a));
    }
}
