//! How the tasks of streams reach the network's task.

use crate::net::streams::{Kind, Reply};
use libp2p::{Stream, identity};
use murmurate_net::quic::BulkConnection;
use murmurate_protocol::PeerId;
use std::io;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long opening a stream may take: libp2p's own limit on negotiation.
const OPEN_WAIT: Duration = Duration::from_secs(10);

/// What a task of a stream tells the network's task.
#[derive(Debug)]
pub(super) enum Internal {
    /// Open a stream.
    Open {
        /// To whom.
        peer: identity::PeerId,
        /// Of which kind.
        kind: Kind,
        /// Where it goes.
        reply: Reply,
    },
    /// The outbound control stream of a link is open.
    ControlUp {
        /// To whom.
        peer: PeerId,
        /// The link's number, so that a late word does not touch a newer link.
        link: u64,
    },
    /// A bulk connection is open; either end may have dialed it.
    Bulk {
        /// The connection.
        connection: BulkConnection,
        /// Whether it is looked at again, because its peer was not linked yet.
        again: bool,
    },
    /// Nothing is left to say on this link: its connections can be closed.
    Close {
        /// To whom.
        peer: PeerId,
        /// The link's number.
        link: u64,
    },
}

/// Opens streams on existing links.
#[derive(Clone, Debug)]
pub(super) struct Opener {
    /// The network's task.
    pub(super) network: mpsc::Sender<Internal>,
}

impl Opener {
    /// Opens a stream; never dials.
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
