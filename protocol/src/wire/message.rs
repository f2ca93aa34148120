//! The control message: one family for each part of a peer that talks to its counterpart.

use crate::Round;
use crate::wire::{
    AgreedMessage, CenterMessage, FormingMessage, MembershipMessage, PullMessage, Scoped,
    TransferMessage, WireError,
};
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

/// A message of an exchange. A run has one exchange, and its peers send no other family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExchangeMessage {
    /// Exchanges whose groups agree: all-reduce, gathered contributions, a server in step.
    Agreed(AgreedMessage),
    /// A center whose peers need not be in the same round.
    Center(CenterMessage),
    /// Pulls of published parameters.
    Pull(PullMessage),
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
            Self::Exchange(ExchangeMessage::Agreed(message)) => message.check(),
            Self::Exchange(ExchangeMessage::Center(_) | ExchangeMessage::Pull(_)) => Ok(()),
        }
    }
}

impl ExchangeMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Agreed(message) => message.name(),
            Self::Center(message) => message.name(),
            Self::Pull(message) => message.name(),
        }
    }
}

impl ExchangeMessage {
    const fn round(&self) -> Option<Round> {
        match self {
            Self::Agreed(AgreedMessage::Forming(message)) => Some(message.round()),
            Self::Agreed(AgreedMessage::Fragment(scoped)) => Some(scoped.round),
            Self::Center(CenterMessage::Ask { .. }) => None,
            Self::Center(CenterMessage::Moved { round, .. })
            | Self::Pull(PullMessage::Ask { round }) => Some(*round),
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

impl From<ExchangeMessage> for Message {
    fn from(message: ExchangeMessage) -> Self {
        Self::Exchange(message)
    }
}

impl From<FormingMessage> for Message {
    fn from(message: FormingMessage) -> Self {
        Self::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(message)))
    }
}

impl From<Scoped> for Message {
    fn from(message: Scoped) -> Self {
        Self::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(message)))
    }
}

impl From<CenterMessage> for Message {
    fn from(message: CenterMessage) -> Self {
        Self::Exchange(ExchangeMessage::Center(message))
    }
}

impl From<PullMessage> for Message {
    fn from(message: PullMessage) -> Self {
        Self::Exchange(ExchangeMessage::Pull(message))
    }
}
