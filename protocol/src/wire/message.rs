//! The control message: one family for each part of a peer that talks to its counterpart.

use crate::Round;
use crate::exchange::ExchangeMessage;
use crate::wire::{MembershipMessage, TransferMessage, WireError};
use serde::{Deserialize, Serialize};

/// A control message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Who takes part, and where it can be reached.
    Membership(MembershipMessage),
    /// States for newcomers, decisions of past rounds for stragglers.
    Transfer(TransferMessage),
    /// What the peers of an exchange say to each other.
    Exchange(ExchangeMessage),
}

impl Message {
    /// The message's name in logs, traces and `docs/wire.md`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Membership(message) => message.name(),
            Self::Transfer(message) => message.name(),
            Self::Exchange(message) => message.name(),
        }
    }

    /// The round that the message is about, if it is about one.
    pub const fn round(&self) -> Option<Round> {
        match self {
            Self::Membership(_) | Self::Transfer(_) => None,
            Self::Exchange(message) => message.round(),
        }
    }

    /// Checks every count and range.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field.
    pub fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Membership(message) => message.check(),
            Self::Transfer(message) => message.check(),
            Self::Exchange(message) => message.check(),
        }
    }
}

impl From<MembershipMessage> for Message {
    fn from(message: MembershipMessage) -> Self {
        Self::Membership(message)
    }
}

impl From<TransferMessage> for Message {
    fn from(message: TransferMessage) -> Self {
        Self::Transfer(message)
    }
}

impl<M: Into<ExchangeMessage>> From<M> for Message {
    fn from(message: M) -> Self {
        Self::Exchange(message.into())
    }
}
