//! Exchanges: contributions in, an agreed aggregate or a mix out. They share one interface, and
//! none of them holds a tensor.
//!
//! A family that sends messages of its own has a module line and a variant of [`ExchangeMessage`]
//! here.

mod agreed;
mod build;
mod cells;
mod center;
mod grid;
mod interface;
mod neighbours;
#[cfg(test)]
mod tests;

pub(crate) use agreed::{
    Agreed, History, admit, digests_of, inputs_of, proven, scores_of, slices_of,
};
pub use agreed::{
    AgreedMessage, Ballot, FormingMessage, FragmentMessage, Head, Held, Member, MergeSide, Pledge,
    Promise, Proposal, Proposed, Said, Scoped, Seat, Seated, ShardPlan, ShardVersion, SignedGroup,
    SignedMessage, Stated, VoteCertificate, Whereabouts, value_of,
};
pub(crate) use build::build;
pub(crate) use cells::CellsExchange;
pub use cells::CellsMessage;
pub(crate) use center::Center;
pub use center::CenterMessage;
pub(crate) use grid::GridExchange;
pub use grid::GridMessage;
pub(crate) use interface::Exchange;
pub use neighbours::{PullMessage, Standing};

use crate::wire::{PeerRecord, WIRE_VERSION_OLDEST, WireError, family};
use crate::{
    Checked, Digest, Done, Ending, FragmentId, OrderId, PeerError, PeerId, PushOutcome, Round,
    Settlement, SliceId, SliceMeta, Tag,
};
use serde::{Deserialize, Serialize};

/// A message of an exchange. A run has one exchange, and its peers send no other family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExchangeMessage {
    /// Exchanges whose groups agree: all-reduce, gathered contributions, a server in step.
    Agreed(AgreedMessage),
    /// A center whose peers need not be in the same round.
    Center(CenterMessage),
    /// Pulls of published parameters.
    Pull(PullMessage),
    /// Rows and columns of a roll.
    Grid(GridMessage),
    /// Cells of a roll.
    Cells(CellsMessage),
}

impl ExchangeMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Agreed(message) => message.name(),
            Self::Center(message) => message.name(),
            Self::Pull(message) => message.name(),
            Self::Grid(message) => message.name(),
            Self::Cells(message) => message.name(),
        }
    }

    /// The first version of the wire that has this message.
    pub(crate) const fn since(&self) -> u8 {
        match self {
            Self::Agreed(AgreedMessage::Forming(
                FormingMessage::ProposePlaced { .. } | FormingMessage::ProposeLinked { .. },
            )) => 8,
            Self::Pull(message) => message.since(),
            _ => WIRE_VERSION_OLDEST,
        }
    }

    /// The round that the message is about, if it is about one.
    pub(crate) const fn round(&self) -> Option<Round> {
        match self {
            Self::Agreed(message) => Some(message.round()),
            Self::Center(message) => message.round(),
            Self::Pull(message) => Some(message.round()),
            Self::Grid(message) => message.round(),
            Self::Cells(message) => message.round(),
        }
    }

    /// A wish for a place in the roll.
    pub(crate) const fn apply(record: PeerRecord) -> Self {
        Self::Grid(GridMessage::Apply(record))
    }

    /// The record of a peer that wants a place in the roll.
    pub(crate) const fn applicant(&self) -> Option<&PeerRecord> {
        match self {
            Self::Grid(GridMessage::Apply(record)) => Some(record),
            _ => None,
        }
    }

    /// The round from which on the receiver has a place in the roll.
    pub(crate) const fn placed(&self) -> Option<Round> {
        match self {
            Self::Grid(GridMessage::Placed { round }) => Some(*round),
            _ => None,
        }
    }

    /// The records in it.
    pub(crate) fn records(&self) -> Vec<PeerRecord> {
        match self {
            Self::Grid(message) => message.records().to_vec(),
            Self::Cells(message) => message.records(),
            Self::Agreed(_) | Self::Center(_) | Self::Pull(_) => Vec::new(),
        }
    }

    /// Checks every count and range.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Agreed(message) => message.check(),
            Self::Grid(message) => message.check(),
            Self::Cells(message) => message.check(),
            Self::Center(_) | Self::Pull(_) => Ok(()),
        }
    }
}

impl From<FormingMessage> for ExchangeMessage {
    fn from(message: FormingMessage) -> Self {
        Self::Agreed(AgreedMessage::Forming(message))
    }
}

impl From<Scoped> for ExchangeMessage {
    fn from(message: Scoped) -> Self {
        Self::Agreed(AgreedMessage::Fragment(message))
    }
}

family!(ExchangeMessage: Center(CenterMessage), Grid(GridMessage), Cells(CellsMessage), Pull(PullMessage));

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

/// The same where the condition says that a rule is broken.
pub(crate) fn forbid(broken: bool, what: &str) -> Checked {
    if broken { broke(what) } else { Ok(()) }
}

/// Settlement of a contribution that is in the result, or is not.
pub(crate) const fn settlement(counted: bool) -> Settlement {
    if counted {
        Settlement::Delivered
    } else {
        Settlement::Lost
    }
}

/// A slice that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The peer that pushed it.
    pub(crate) from: PeerId,
    /// Its name.
    pub(crate) slice: SliceId,
    /// Its header.
    pub(crate) meta: SliceMeta,
    /// Hash of its bytes; only for aggregates.
    pub(crate) digest: Option<Digest>,
}

/// How a push ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushEnd {
    pub(crate) to: PeerId,
    pub(crate) slice: SliceId,
    pub(crate) outcome: PushOutcome,
}

/// Something that an exchange may have to react to.
pub(crate) enum Signal<'a> {
    /// A message of the exchange.
    Message {
        from: PeerId,
        message: &'a ExchangeMessage,
    },
    /// A slice arrived.
    Arrived(Arrived),
    /// A push ended.
    Pushed(PushEnd),
    /// A slice was fetched.
    Fetched {
        slice: SliceId,
        digest: Option<Digest>,
    },
    /// The fetch of a slice failed.
    FetchFailed(SliceId),
    /// An order of the exchange was answered.
    Done { order: OrderId, done: &'a Done },
    /// A peer's link is gone.
    Gone(PeerId),
    /// A peer has said which round it is in.
    Heard(PeerId),
    /// The exchange's timer ran out.
    Timeout,
}

/// The endings that are not told yet, of fragments with their endings and whether they are told.
pub(crate) fn tell<'a>(
    fragments: impl Iterator<Item = (FragmentId, Option<&'a Ending>, &'a mut bool)>,
) -> Vec<(FragmentId, Ending)> {
    let untold = fragments.filter_map(|(fragment, ending, told)| {
        let ending = ending.filter(|_| !std::mem::replace(told, true))?;
        Some((fragment, ending.clone()))
    });
    untold.collect()
}

/// End of a round's exchange.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Every fragment has ended, and the exchange has reported each ending.
    Ended,
    /// No peer exchanges with this one now: the round continues with more training. It has not
    /// ended, so that a peer that is alone for a while is not ahead of the others afterwards.
    Alone,
    /// The swarm is ahead of this peer.
    Behind {
        /// The peer that said so.
        teller: PeerId,
        /// Replaying past rounds is not enough, and a state must be taken over.
        resync: bool,
    },
}

/// Places of a peer's push-sum mass.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PushSum {
    /// The weight of the parameters, fragment by fragment.
    pub(crate) weights: Vec<f64>,
    /// Weight that is this peer's: pushed weight is not, until it comes back.
    pub(crate) held: f64,
}
