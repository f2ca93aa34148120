//! The interface to the transport that opens byte streams to peers.

use crate::bulk::Pipe;
use futures::future::BoxFuture;
use murmurate_net::quic::BulkConnection;
use murmurate_protocol::PeerId;
use std::io;

/// Opens bulk streams: on a bulk connection if possible, otherwise on the link.
pub trait BulkTransport: Send + Sync {
    /// Opens a stream to a linked peer. Fails for others; it never dials.
    fn open(&self, to: PeerId) -> BoxFuture<'static, io::Result<Pipe>>;

    /// Whether new streams still use this connection. If not, it may be closed once it is idle.
    fn keeps(&self, connection: &BulkConnection) -> bool {
        connection.close_reason().is_none()
    }
}
