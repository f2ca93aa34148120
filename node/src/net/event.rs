//! What the network tells its driver.

use crate::bulk::{BulkEvent, BulkEvents};
use crate::net::{ListenFailure, NatReport, Path};
use futures::future::BoxFuture;
use libp2p::Multiaddr;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::{PeerRecord, WireError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Something that happened on the network.
///
/// The frames of a link come after its `LinkUp` and before its `LinkDown`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NetEvent {
    /// This peer can be reached here; the address ends in `/p2p`.
    Listening(Multiaddr),
    /// This peer cannot be reached there any more.
    NotListening(Multiaddr),
    /// One of several addresses cannot be listened on; the others work.
    ListenFailed(ListenFailure),
    /// Something that the operator should know, with what to do about it.
    Notice(String),
    /// A peer is linked: frames and slices can go both ways. Once per peer, however many
    /// connections there are.
    LinkUp(PeerId),
    /// The last connection to a linked peer is gone.
    LinkDown(PeerId),
    /// How a link that is up reaches its peer, after `LinkUp` and whenever it changes.
    Path {
        /// To whom.
        peer: PeerId,
        /// Which way.
        path: Path,
        /// Why this way, in words.
        reason: String,
    },
    /// How this peer stands towards routers, whenever it changes.
    Nat(NatReport),
    /// A control frame, not looked at but for its length.
    Frame {
        /// From whom.
        from: PeerId,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// Bytes on a control stream that are no frame; the stream is closed.
    Malformed {
        /// From whom.
        from: PeerId,
        /// What is wrong.
        error: WireError,
    },
    /// A link was measured.
    Measured {
        /// To whom.
        peer: PeerId,
        /// Round-trip time of the last ping.
        rtt: Duration,
        /// Bytes per second of recent pushes, smoothed; zero before the first.
        rate: u64,
    },
    /// A bulk transfer ended, or a bulk stream broke the rules.
    Bulk(BulkEvent),
    /// This peer's own record, signed anew.
    Record(PeerRecord),
    /// A peer to join through did not answer.
    BootstrapFailed {
        /// Its address.
        address: Multiaddr,
        /// Why, in words.
        reason: String,
        /// When it is tried again; `None` when it is given up.
        retry_in: Option<Duration>,
    },
}

impl BulkEvents for mpsc::Sender<NetEvent> {
    fn tell(&self, event: BulkEvent) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The driver is gone only when the daemon ends.
            let _ = self.send(NetEvent::Bulk(event)).await;
        })
    }

    fn measured(&self, peer: PeerId, rtt: Duration, rate: u64) {
        let _ = self.try_send(NetEvent::Measured { peer, rtt, rate });
    }
}
