//! What a remote peer can do wrong.

use crate::wire::WireError;

/// A rule that a remote broke. The peer's state is unchanged but for the remote's score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A message or slice that makes no sense from this peer at this time.
    #[error("{what}")]
    Unexpected {
        /// In words.
        what: String,
    },
    /// Bytes that are not a message.
    #[error("malformed message: {0}")]
    Malformed(WireError),
}
