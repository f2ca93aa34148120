//! Messages from the tasks of streams to the network's task.

use crate::net::gate::Passed;
use crate::net::streams::{Kind, Reply};
use libp2p::{Multiaddr, Stream, identity};
use murmurate_net::quic::{BulkConnection, Endpoint};
use murmurate_net::tcp;
use murmurate_protocol::PeerId;
use murmurate_trust::Learned;
use std::io;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long opening a stream may take, which is libp2p's own limit for the negotiation.
const OPEN_WAIT: Duration = Duration::from_secs(10);

/// A message from a stream's task to the network's task.
#[derive(Debug)]
pub(super) enum Internal {
    /// Opens a stream.
    Open {
        /// The peer to open it to.
        peer: identity::PeerId,
        /// Kind of the stream.
        kind: Kind,
        /// Receives the stream.
        reply: Reply,
    },
    /// The outbound control stream of a link is open.
    ControlUp {
        /// The peer at the other end.
        peer: PeerId,
        /// The link's number, so that a late message does not affect a newer link.
        link: u64,
    },
    /// The name in an address to join was looked up.
    Resolved {
        /// The address with the name.
        address: Multiaddr,
        /// The addresses to dial, or why there are none.
        found: Result<Vec<Multiaddr>, String>,
    },
    /// A handshake at the gate went on or ended.
    Gate(Passed),
    /// A member told something new.
    Learned {
        /// The member.
        from: PeerId,
        /// What was new in it.
        learned: Learned,
    },
    /// All that a member had to tell was read.
    NewsRead {
        /// The member.
        from: PeerId,
    },
    /// A bulk connection is open. Either end may have dialled it.
    Bulk {
        /// The connection.
        connection: BulkConnection,
        /// Whether this is the second look, because the peer was not linked at the first.
        again: bool,
    },
    /// A bulk connection over TLS and TCP is open. Either end may have dialled it.
    Tcp {
        /// The connection.
        connection: tcp::Connection,
    },
    /// All frames of this link were written, so its connections can be closed.
    Close {
        /// The peer at the other end.
        peer: PeerId,
        /// The link's number.
        link: u64,
    },
}

/// Opens streams on existing links.
#[derive(Clone, Debug)]
pub(super) struct Opener {
    /// The queue of the network's task.
    pub(super) network: mpsc::Sender<Internal>,
}

impl Opener {
    /// Opens a stream on an existing link. Never dials.
    pub(super) async fn open(&self, peer: identity::PeerId, kind: Kind) -> io::Result<Stream> {
        let (reply, opened) = oneshot::channel();
        let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
        let asked = async {
            let ask = Internal::Open { peer, kind, reply };
            self.network
                .send(ask)
                .await
                .map_err(|_| io::ErrorKind::NotConnected)?;
            opened.await.unwrap_or_else(|error| Err(gone(error)))
        };
        timeout(OPEN_WAIT, asked)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Passes on bulk connections that others open.
pub(super) async fn accept_bulk(quic: Endpoint, opener: Opener) {
    while let Some(connection) = quic.accept_bulk().await {
        let word = Internal::Bulk {
            connection,
            again: false,
        };
        if opener.network.send(word).await.is_err() {
            return;
        }
    }
}
