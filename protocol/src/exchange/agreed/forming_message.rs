//! Messages that form a round's group.

use super::member::Member;
use super::merge_side::MergeSide;
use super::said::Said;
use super::signed_message::Seat;
use super::whereabouts::Whereabouts;
use crate::schedule::AgreedLinks;
use crate::{Branch, Digest, GroupTag, Round};
use serde::{Deserialize, Serialize};

/// A message that forms a round's group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FormingMessage {
    /// The sender's training of this round ended; sent to all peers.
    Ready {
        /// The round.
        round: Round,
        /// What it says of its contribution.
        said: Said,
        /// Hash of the anchor it started from, and of the owner's rules where there are any.
        anchor: Digest,
        /// Whether it may propose a group: it has been in one since it took over a state.
        proposes: bool,
    },
    /// The round's group.
    Propose {
        /// The round.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// The members in `PeerId` order.
        members: Vec<Member>,
    },
    /// The sender does not join the proposed group.
    Decline {
        /// The round.
        round: Round,
        /// The term.
        term: u8,
    },
    /// The round that the receiver's message names continues, or continued, without it.
    Behind {
        /// The first round the receiver can take part in again.
        round: Round,
        /// Whether the receiver's anchor differs from the swarm's, so that replaying past rounds
        /// cannot repair it.
        resync: bool,
    },
    /// [`FormingMessage::Ready`] in a run whose groups survive liars.
    SignedReady {
        /// The round.
        round: Round,
        /// Hash of the anchor it started from, and of the owner's rules where there are any.
        anchor: Digest,
        /// Whether it may propose a group.
        proposes: bool,
        /// What the sender says of itself.
        seat: Seat,
    },
    /// [`FormingMessage::Propose`] in a run whose groups survive liars.
    SignedPropose {
        /// The round.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// Peers that take part in rounds, absent ones included: the quorum is of these.
        seats: u16,
        /// The anchor of all members.
        anchor: Digest,
        /// The members in `PeerId` order.
        members: Vec<Seat>,
    },
    /// The sender is not in a proposed group whose members sign, or not any more, and has signed nothing
    /// in it.
    Left {
        /// The round.
        round: Round,
        /// The group.
        group: GroupTag,
        /// Whether what it said of its readiness still holds.
        ready: bool,
    },
    /// The sender is in a group whose members sign.
    Joined {
        /// The round.
        round: Round,
        /// The group.
        group: GroupTag,
    },
    /// The sender has stopped between two rounds, so that its branch can be merged with others.
    Meet {
        /// The round that it is in.
        round: Round,
        /// Hash of its anchor.
        anchor: Digest,
        /// Its branch.
        branch: Box<Branch>,
    },
    /// The group that merges branches.
    Merge {
        /// The round that merges them.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// The sides.
        sides: Vec<MergeSide>,
    },
    /// [`FormingMessage::Propose`] in a run whose members go by their lines or sites.
    ProposePlaced {
        /// The round.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// The members in `PeerId` order.
        members: Vec<Member>,
        /// Where each of them is, as far as the proposer knows it.
        places: Vec<Whereabouts>,
    },
    /// [`FormingMessage::Propose`] in a run whose schedule goes by links that members measure.
    ProposeLinked {
        /// The round.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// The members in `PeerId` order.
        members: Vec<Member>,
        /// The rates of their links.
        links: AgreedLinks,
    },
}

impl FormingMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "ready",
            Self::Propose { .. } => "propose",
            Self::Decline { .. } => "decline",
            Self::Behind { .. } => "behind",
            Self::SignedReady { .. } => "signed-ready",
            Self::SignedPropose { .. } => "signed-propose",
            Self::Joined { .. } => "joined",
            Self::Left { .. } => "left",
            Self::Meet { .. } => "meet",
            Self::Merge { .. } => "merge",
            Self::ProposePlaced { .. } => "propose-placed",
            Self::ProposeLinked { .. } => "propose-linked",
        }
    }

    pub(super) const fn round(&self) -> Round {
        match self {
            Self::Ready { round, .. }
            | Self::Propose { round, .. }
            | Self::Decline { round, .. }
            | Self::Behind { round, .. }
            | Self::SignedReady { round, .. }
            | Self::SignedPropose { round, .. }
            | Self::Joined { round, .. }
            | Self::Left { round, .. }
            | Self::Meet { round, .. }
            | Self::Merge { round, .. }
            | Self::ProposePlaced { round, .. }
            | Self::ProposeLinked { round, .. } => *round,
        }
    }
}
