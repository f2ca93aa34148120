//! A bulk connection, whose streams carry slices and states. This module does not interpret them.

use crate::quic::addr::bare;
use crate::quic::close::CloseCode;
use crate::quic::registry::Hold;
use crate::quic::stats::PathStats;
use libp2p::PeerId;
use quinn::{ConnectionError, RecvStream, SendStream};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection to a peer whose identity is proved. Clones refer to the same connection. It closes
/// when the last clone and all streams are dropped.
#[derive(Clone)]
pub struct BulkConnection {
    connection: quinn::Connection,
    peer: PeerId,
    _hold: Arc<Hold>,
}

impl BulkConnection {
    pub(super) fn new(connection: quinn::Connection, peer: PeerId, hold: Hold) -> Self {
        Self {
            connection,
            peer,
            _hold: Arc::new(hold),
        }
    }

    /// The peer at the other end.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The current address of the other end.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        bare(self.connection.remote_address())
    }

    /// This end dialled.
    #[must_use]
    pub fn is_dialer(&self) -> bool {
        self.connection.side() == quinn::Side::Client
    }

    /// Opens a stream to write to. Waits while the remote does not allow more streams. The remote
    /// notices the stream with its first byte.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        self.connection.open_uni().await
    }

    /// Waits for the next stream that the remote opened to write to.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        self.connection.accept_uni().await
    }

    /// Opens a bidirectional stream.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.connection.open_bi().await
    }

    /// Waits for the next bidirectional stream that the remote opened.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.connection.accept_bi().await
    }

    /// Bounds the bytes that are written and not yet acknowledged.
    pub fn set_send_window(&self, bytes: u64) {
        self.connection.set_send_window(bytes);
    }

    /// The connection's measurements.
    #[must_use]
    pub fn stats(&self) -> PathStats {
        PathStats::of(&self.connection)
    }

    /// Why the connection ended; `None` if it is open. [`CloseCode::of`] extracts the remote's
    /// code.
    #[must_use]
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.connection.close_reason()
    }

    /// Waits until the connection ends.
    pub async fn closed(&self) -> ConnectionError {
        self.connection.closed().await
    }

    /// Closes the connection. Unacknowledged data may be lost.
    pub fn close(&self, code: CloseCode) {
        code.close(&self.connection);
    }

    /// The underlying quinn connection.
    #[must_use]
    pub fn quinn(&self) -> &quinn::Connection {
        &self.connection
    }
}

impl fmt::Debug for BulkConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkConnection")
            .field("peer", &self.peer)
            .field("remote", &self.remote_address())
            .finish_non_exhaustive()
    }
}
