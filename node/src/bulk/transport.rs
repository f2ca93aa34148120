//! The interface to the transport that opens byte streams to peers.

use crate::bulk::{Pipe, Served, Way};
use futures::future::BoxFuture;
use murmurate_net::quic::{BulkConnection, RecvStream};
use murmurate_protocol::PeerId;
use std::io;
use std::time::Duration;

/// Opens bulk streams: on a bulk connection if possible, otherwise on the link.
pub trait BulkTransport: Send + Sync {
    /// Opens a stream to a linked peer. Fails for others; it never dials.
    fn open(&self, to: PeerId) -> BoxFuture<'static, io::Result<Pipe>>;

    /// Whether new streams still use this connection. If not, it may be closed once it is idle.
    fn keeps(&self, connection: &Served) -> bool {
        match connection {
            Served::Quic(connection) => connection.close_reason().is_none(),
            Served::Tcp(connection) => connection.session().ended().is_none(),
        }
    }

    /// A stream on which the remote only sends, which no transfer does. Dropping it refuses it.
    fn told(&self, _from: &BulkConnection, _stream: RecvStream) {}

    /// A push over this way was acknowledged after it kept the way busy for `took`.
    fn measured(&self, _to: PeerId, _way: Way, _bytes: u64, _took: Duration) {}
}
