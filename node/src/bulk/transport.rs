//! The seam below bulk transfer: something that opens byte streams to peers.

use futures::future::BoxFuture;
use futures::io::{AsyncRead, AsyncWrite};
use murmurate_protocol::PeerId;
use std::io;

/// A byte stream in both directions. Closing its write half tells the other end that all is said;
/// dropping it gives up.
pub trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// Opens bulk streams: a libp2p substream today, a connection of its own tomorrow.
pub trait BulkTransport: Send + Sync {
    /// Opens a stream to a linked peer. Never dials.
    fn open(&self, to: PeerId) -> BoxFuture<'static, io::Result<Box<dyn Pipe>>>;
}
