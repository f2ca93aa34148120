//! What the peers of a cell say to each other before their agreement begins.

use crate::limits::{CELL_NEWS_MAX, GROUP_MEMBERS_MAX};
use crate::wire::check::ok;
use crate::wire::{PeerRecord, WireError};
use crate::{PeerId, RollSeat, Round};
use serde::{Deserialize, Serialize};

/// A message between peers of cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CellsMessage {
    /// To all peers of the round's cell: the sender has trained.
    Ready {
        /// The round.
        round: Round,
        /// Changes of places that the receiver may not know.
        news: Vec<RollSeat>,
    },
    /// The round's cell, by the peer that forms it.
    Form {
        /// The round.
        round: Round,
        /// Its members, in `PeerId` order.
        members: Vec<PeerId>,
    },
    /// Answers a peer that is ready: the sender's cell of the round has no room for it.
    Passed {
        /// The round.
        round: Round,
        /// The round that the sender is in.
        now: Round,
    },
    /// Answers a peer that asked for a place: it has one from the round on that is said here.
    Seats(Vec<RollSeat>),
}

impl CellsMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "cell-ready",
            Self::Form { .. } => "cell-form",
            Self::Passed { .. } => "cell-passed",
            Self::Seats(_) => "cell-seats",
        }
    }

    /// The round that the message is about, if it is about one.
    pub(crate) const fn round(&self) -> Option<Round> {
        match self {
            Self::Ready { round, .. } | Self::Form { round, .. } => Some(*round),
            Self::Passed { now, .. } => Some(*now),
            Self::Seats(_) => None,
        }
    }

    pub(crate) fn records(&self) -> Vec<PeerRecord> {
        match self {
            Self::Ready { news, .. } | Self::Seats(news) => {
                news.iter().map(|seat| seat.record.clone()).collect()
            }
            Self::Form { .. } | Self::Passed { .. } => Vec::new(),
        }
    }

    /// Checks every count and range.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Ready { news, .. } | Self::Seats(news) => {
                ok(news.len() <= CELL_NEWS_MAX, "cell.news")?;
                news.iter().try_for_each(|seat| seat.record.check())
            }
            Self::Form { members, .. } => {
                ok(members.len() <= GROUP_MEMBERS_MAX, "cell.members")?;
                ok(members.is_sorted_by(|a, b| a < b), "cell.members.order")
            }
            Self::Passed { .. } => Ok(()),
        }
    }
}
