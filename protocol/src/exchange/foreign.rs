//! Errors for what belongs to another exchange, or breaks a rule of this one.

use crate::exchange::ExchangeMessage;
use crate::{PeerError, Tag};

/// The error for a message that belongs to another exchange than this run's.
pub(crate) fn foreign_message(message: &ExchangeMessage, exchange: &'static str) -> PeerError {
    let message = message.name();
    PeerError::ForeignMessage { message, exchange }
}

/// The error for a slice whose tag belongs to another exchange, or to another part of this one.
pub(crate) fn foreign_tag(tag: Tag, exchange: &'static str) -> PeerError {
    let tag = tag.name();
    PeerError::ForeignTag { tag, exchange }
}

/// The error for a slice or a message that breaks a rule.
pub(crate) fn broke<T>(what: &str) -> Result<T, PeerError> {
    Err(PeerError::Unexpected {
        what: what.to_owned(),
    })
}
