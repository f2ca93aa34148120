//! What a remote peer can do wrong.

use crate::wire::WireError;

/// A rule that a remote broke. Only the remote's score has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A message or slice that makes no sense from this peer at this time.
    #[error("{what}")]
    Unexpected {
        /// In words.
        what: String,
    },
    /// A message of an exchange that this run does not use.
    #[error("message `{message}` does not belong to the exchange of this run, {exchange}")]
    ForeignMessage {
        /// The message's name.
        message: &'static str,
        /// This run's exchange.
        exchange: &'static str,
    },
    /// A slice whose tag belongs to another exchange, or to another part of this one.
    #[error("a slice with tag `{tag}` does not fit the exchange of this run, {exchange}")]
    ForeignTag {
        /// The tag's name.
        tag: &'static str,
        /// This run's exchange.
        exchange: &'static str,
    },
    /// Bytes that are not a message.
    #[error("malformed message: {0}")]
    Malformed(WireError),
}
