//! Why a session or a stream ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why a session or one of its streams ended. Clones share the system's error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MuxError {
    /// This end closed the session.
    #[error("the connection was closed")]
    Closed,
    /// The remote closed the session between frames.
    #[error("the remote closed the connection")]
    Ended,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(Arc<io::Error>),
    /// The remote stopped within a frame, or took no bytes.
    #[error("the remote stood still for {} s within a frame", .0.as_secs())]
    Stalled(Duration),
    /// The remote broke the rules of frames.
    #[error("the remote sent {0}")]
    Violation(&'static str),
    /// The remote gave up the stream, or does not want it.
    #[error("the remote gave up the stream")]
    GivenUp,
    /// As many streams as allowed are open.
    #[error("too many streams are open")]
    TooMany,
}

impl From<io::Error> for MuxError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<MuxError> for io::Error {
    fn from(error: MuxError) -> Self {
        let kind = match &error {
            MuxError::Closed | MuxError::Ended => io::ErrorKind::NotConnected,
            MuxError::Io(inner) => inner.kind(),
            MuxError::Stalled(_) => io::ErrorKind::TimedOut,
            MuxError::Violation(_) => io::ErrorKind::InvalidData,
            MuxError::GivenUp => io::ErrorKind::ConnectionReset,
            MuxError::TooMany => io::ErrorKind::QuotaExceeded,
        };
        Self::new(kind, error)
    }
}
