//! Events from the network to its driver, and their order: frames of a link come between its `LinkUp` and its
//! `LinkDown`.

use super::{GateError, ListenFailure, NatReport, Path};
use crate::bulk::{BulkEvent, BulkEvents};
use futures::future::BoxFuture;
use libp2p::{Multiaddr, Stream};
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::{PeerRecord, WireError};
use murmurate_trust::{Overused, Refusal, Role};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, Permit};

/// An event of the network.
///
/// The frames of a link come after its `LinkUp` and before its `LinkDown`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NetEvent {
    /// Others can reach this peer at this address, which ends in `/p2p`.
    Listening(Multiaddr),
    /// Others can no longer reach this peer at this address.
    NotListening(Multiaddr),
    /// One of several listening addresses cannot be used; the others work.
    ListenFailed(ListenFailure),
    /// A message for the operator, with what to do.
    Notice(String),
    /// By its certificate, a peer takes no part in rounds. Comes before its `LinkUp`.
    Bystander {
        /// The peer.
        peer: PeerId,
        /// Its role.
        role: Role,
    },
    /// A link to a peer is up, so frames and slices can be exchanged. Sent once per peer, for any
    /// number of connections.
    LinkUp(PeerId),
    /// The last connection to a linked peer is gone.
    LinkDown(PeerId),
    /// The path of a link, sent after `LinkUp` and whenever the path changes.
    Path {
        /// The peer at the other end.
        peer: PeerId,
        /// The path.
        path: Path,
        /// Why this path is used.
        reason: String,
        /// Set where direct dials were tried since the link is there, and failed.
        in_vain: bool,
    },
    /// Reachability of this peer, sent whenever it changes.
    Nat(NatReport),
    /// A control frame. Only its length has been checked.
    Frame {
        /// The sender.
        from: PeerId,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// A control stream contained bytes that are not a frame, and is closed; or a member passed on
    /// something that is not so.
    Malformed {
        /// The sender.
        from: PeerId,
        /// The error.
        error: WireError,
    },
    /// The measurements of a link.
    Measured {
        /// The peer at the other end.
        peer: PeerId,
        /// Round-trip time of the last ping.
        rtt: Duration,
        /// Bytes per second of recent pushes, smoothed; zero before the first push.
        rate: u64,
    },
    /// A bulk transfer ended, or a bulk stream violated the protocol.
    Bulk(BulkEvent),
    /// This peer's own record with a new signature.
    Record(PeerRecord),
    /// The register of members has changed.
    Register,
    /// A linked peer is no longer a member.
    Dismissed(PeerId, Refusal),
    /// More peers used an invite than may.
    Overused(Overused),
    /// A member is banned from the run.
    Banned {
        /// The member.
        peer: PeerId,
        /// Its proven lie, in words that follow its name.
        what: String,
    },
    /// A peer that this daemon dialled is no member of the run, or refused this daemon; or a peer that
    /// either end dialled speaks no version of the wire that this daemon speaks.
    TurnedAway {
        /// The peer.
        peer: PeerId,
        /// Why.
        error: GateError,
        /// The address to join through, if it was one.
        address: Option<Multiaddr>,
        /// Time until the next attempt at that address, if there is one.
        retry_in: Option<Duration>,
    },
    /// An address to join through could not be dialled.
    BootstrapFailed {
        /// The address.
        address: Multiaddr,
        /// The reason.
        reason: String,
        /// Time until the next attempt; `None` if the address is given up.
        retry_in: Option<Duration>,
    },
}

impl NetEvent {
    /// The linked peer that it is about, if it is a link's event.
    pub fn link(&self) -> Option<PeerId> {
        match self {
            Self::LinkUp(peer)
            | Self::LinkDown(peer)
            | Self::Frame { from: peer, .. }
            | Self::Malformed { from: peer, .. }
            | Self::Measured { peer, .. }
            | Self::Bulk(
                BulkEvent::Arrived { from: peer, .. } | BulkEvent::Malformed { from: peer, .. },
            ) => Some(*peer),
            _ => None,
        }
    }
}

impl BulkEvents for mpsc::Sender<NetEvent> {
    fn tell(&self, event: BulkEvent) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The receiver is dropped only when the daemon ends.
            let _ = self.send(NetEvent::Bulk(event)).await;
        })
    }

    fn measured(&self, peer: PeerId, rtt: Duration, rate: u64) {
        let _ = self.try_send(NetEvent::Measured { peer, rtt, rate });
    }
}

/// Open while events of a link may pass. The link's readers and the network's task share it.
#[derive(Clone, Debug)]
pub(super) struct Latch(Arc<Mutex<bool>>);

impl Latch {
    /// Creates an open latch.
    pub(super) fn open() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Sends an event unless the latch is shut. Returns whether it was sent.
    pub(super) fn pass(&self, permit: Permit<'_, NetEvent>, event: NetEvent) -> bool {
        // The lock is held while sending, so no event can follow after `shut` has returned.
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *open {
            permit.send(event);
        }
        *open
    }

    /// Shuts the latch for good.
    pub(super) fn shut(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// An item of work, in order with the events.
#[derive(Debug)]
pub(super) enum Pending {
    /// Send an event to the driver.
    Event(NetEvent),
    /// Tell the driver that a link is down. No event of that link may follow.
    Down(PeerId, Latch),
    /// Begin to read an inbound control stream, because its link is now up.
    Read(PeerId, Stream),
}
