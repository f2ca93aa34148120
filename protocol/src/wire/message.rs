//! The control message: one family for each part of a peer that talks to its counterpart. Those of a catch-up are
//! here too.

use crate::exchange::{AgreedMessage, ExchangeMessage};
use crate::limits::STATE_BYTES_MAX;
use crate::wire::check::ok;
use crate::wire::{MembershipMessage, PeerRecord, WIRE_VERSION_OLDEST, WireError, family};
use crate::{Base, Digest, FoundingMessage, PeerId, Round, RunId, Signed, StateId};
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
    /// How a run gets its first roll.
    Founding(FoundingMessage),
}

impl Message {
    /// The message's name in logs, traces and `docs/wire.md`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Membership(message) => message.name(),
            Self::Transfer(message) => message.name(),
            Self::Exchange(message) => message.name(),
            Self::Founding(message) => message.name(),
        }
    }

    /// The first version of the wire that has this message.
    pub const fn since(&self) -> u8 {
        match self {
            Self::Membership(MembershipMessage::Settings(_)) => 8,
            Self::Exchange(message) => message.since(),
            _ => WIRE_VERSION_OLDEST,
        }
    }

    /// The round that the message is about, if it is about one.
    pub const fn round(&self) -> Option<Round> {
        match self {
            Self::Membership(_) | Self::Transfer(_) | Self::Founding(_) => None,
            Self::Exchange(message) => message.round(),
        }
    }

    /// It carries signatures, which hosts make and check.
    pub const fn is_signed(&self) -> bool {
        match self {
            Self::Exchange(ExchangeMessage::Agreed(message)) => message.is_signed(),
            _ => false,
        }
    }

    /// The round in which its signature binds the sender, which must remember that it signed: it may be part of a
    /// decision.
    pub const fn binds(&self) -> Option<Round> {
        match self {
            Self::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)))
                if scoped.body.binds() =>
            {
                Some(scoped.round)
            }
            _ => None,
        }
    }

    /// Says of `me`, before its host signs, whether it may have signed something in the message's
    /// round in an earlier life, which ended in round `forgotten`.
    pub fn confess(&mut self, me: PeerId, forgotten: Round) {
        if let Self::Exchange(ExchangeMessage::Agreed(message)) = self {
            message.confess(me, forgotten);
        }
    }

    /// Every signature in it, with the statement that it is under, if `from` sent it. The host of
    /// the sender fills in those of the sender that are blank; the host of the receiver checks all
    /// of them before the peer receives the message.
    pub fn signed(&mut self, run: &RunId, from: PeerId) -> Vec<Signed<'_>> {
        match self {
            Self::Exchange(ExchangeMessage::Agreed(message)) => message.signed(run, from),
            _ => Vec::new(),
        }
    }

    /// The records in it, whose signatures the host of the receiver checks before the peer receives the
    /// message.
    pub fn records(&self) -> Vec<PeerRecord> {
        match self {
            Self::Membership(MembershipMessage::Records(records)) => records.clone(),
            Self::Founding(message) => message.records().to_vec(),
            Self::Exchange(message) => message.records(),
            _ => Vec::new(),
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
            Self::Founding(message) => message.check(),
        }
    }
}

family!(Message: Membership(MembershipMessage), Founding(FoundingMessage), Transfer(TransferMessage));

impl<M: Into<ExchangeMessage>> From<M> for Message {
    fn from(message: M) -> Self {
        Self::Exchange(message.into())
    }
}

/// A state that a donor offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offer {
    /// The state.
    pub state: StateId,
    /// One hash over the parameters in it.
    pub anchor: Digest,
}

/// A message between a peer that catches up and one that helps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TransferMessage {
    /// Asks a peer to keep a state for the sender to fetch.
    StateAsk {
        /// The sender cannot use a state that opens an earlier round.
        at_least: Round,
    },
    /// A state that can be fetched from the sender.
    StateOffer(Offer),
    /// The sender has no state to give.
    StateRefuse,
    /// Asks for the decisions of a past round.
    HistoryAsk {
        /// The round whose decisions the sender lacks, and the parameters with which it begins it.
        began: Base,
    },
    /// The sender does not have the decisions of that round, or began it with other parameters.
    HistoryRefuse {
        /// The round.
        round: Round,
    },
    /// Asks with which parameters a round began.
    AnchorAsk {
        /// The round.
        round: Round,
    },
    /// With which parameters the sender began a round.
    Anchor {
        /// The round.
        round: Round,
        /// One hash over the parameters; `None` if it did not begin that round, or has forgotten it.
        anchor: Option<Digest>,
    },
}

impl TransferMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StateAsk { .. } => "state-ask",
            Self::StateOffer(_) => "state-offer",
            Self::StateRefuse => "state-refuse",
            Self::HistoryAsk { .. } => "history-ask",
            Self::HistoryRefuse { .. } => "history-refuse",
            Self::AnchorAsk { .. } => "anchor-ask",
            Self::Anchor { .. } => "anchor",
        }
    }

    pub(super) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::StateOffer(offer) => ok(offer.state.bytes <= STATE_BYTES_MAX, "state.bytes"),
            Self::StateAsk { .. }
            | Self::StateRefuse
            | Self::HistoryAsk { .. }
            | Self::HistoryRefuse { .. }
            | Self::AnchorAsk { .. }
            | Self::Anchor { .. } => Ok(()),
        }
    }
}
