//! What peers say to each other until a run has its first roll.

use crate::limits::{FOUNDING_RECORDS_MAX, ROLL_PEERS_MAX};
use crate::wire::check::ok;
use crate::wire::{PeerRecord, WireError};
use crate::{Digest, PeerId};
use serde::{Deserialize, Serialize};

/// A proposal's number, and who makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoundingBallot {
    /// Rises with every attempt.
    pub number: u32,
    /// The founder, which breaks ties.
    pub founder: Option<PeerId>,
}

/// A roll by its name, and how many peers it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RollName {
    /// Its digest.
    pub digest: Digest,
    /// Number of peers.
    pub peers: u16,
}

/// A message about the first roll of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FoundingMessage {
    /// The peers of the highest ranks that the sender knows: the registrars. Empty as a sign of life.
    Registrars(Vec<PeerRecord>),
    /// Peers that are here and have no roll: the sender, or those that registered with it.
    Here(Vec<PeerRecord>),
    /// Asks a registrar for a promise to accept no lower proposal.
    Prepare {
        /// The proposal.
        ballot: FoundingBallot,
    },
    /// The sender accepts no lower proposal any more.
    Promise {
        /// The proposal that it was asked about, or a higher one that has its promise.
        ballot: FoundingBallot,
        /// The roll that it has accepted, and in which proposal.
        accepted: Option<(FoundingBallot, RollName)>,
    },
    /// Asks a registrar to accept a roll.
    Accept {
        /// The proposal.
        ballot: FoundingBallot,
        /// The roll.
        roll: RollName,
    },
    /// The sender has accepted the proposal.
    Accepted {
        /// The proposal.
        ballot: FoundingBallot,
    },
    /// The run has this first roll.
    Founded(RollName),
    /// Asks for a page of a roll.
    PageAsk {
        /// The roll.
        roll: Digest,
        /// The place of its first peer.
        first: u16,
    },
    /// A page of a roll: as many of its peers as fit, in order.
    Page {
        /// The roll.
        roll: Digest,
        /// The place of the first peer.
        first: u16,
        /// The peers.
        records: Vec<PeerRecord>,
    },
}

impl FoundingMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Registrars(_) => "registrars",
            Self::Here(_) => "here",
            Self::Prepare { .. } => "founding-prepare",
            Self::Promise { .. } => "founding-promise",
            Self::Accept { .. } => "founding-accept",
            Self::Accepted { .. } => "founding-accepted",
            Self::Founded(_) => "founded",
            Self::PageAsk { .. } => "page-ask",
            Self::Page { .. } => "page",
        }
    }

    /// Checks every count and range.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        let peers = |roll: &RollName| {
            let fits = (1..=ROLL_PEERS_MAX).contains(&usize::from(roll.peers));
            ok(fits, "roll.peers")
        };
        match self {
            Self::Registrars(records) | Self::Here(records) | Self::Page { records, .. } => {
                ok(records.len() <= FOUNDING_RECORDS_MAX, "records")?;
                records.iter().try_for_each(PeerRecord::check)
            }
            Self::Promise {
                accepted: Some((_, roll)),
                ..
            }
            | Self::Accept { roll, .. }
            | Self::Founded(roll) => peers(roll),
            Self::PageAsk { first, .. } => ok(usize::from(*first) < ROLL_PEERS_MAX, "first"),
            Self::Prepare { .. } | Self::Promise { .. } | Self::Accepted { .. } => Ok(()),
        }
    }

    /// The records in it, which hosts check.
    pub fn records(&self) -> &[PeerRecord] {
        match self {
            Self::Registrars(records) | Self::Here(records) | Self::Page { records, .. } => records,
            _ => &[],
        }
    }
}
