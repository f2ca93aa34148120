//! How far a peer is in catching up with the others.

use crate::peer::replay::Replay;
use crate::wire::TransferMessage;
use crate::{Digest, OrderId, PeerId, StateId};
use std::collections::{BTreeMap, BTreeSet};

/// How far the catch-up is.
#[derive(Debug)]
pub(super) enum CatchUp {
    /// Nothing to catch up with.
    Idle,
    /// Donors were asked.
    Asking {
        asked: BTreeSet<PeerId>,
        offers: BTreeMap<Offer, Vec<PeerId>>,
    },
    /// Others are asked whether an offered state is the run's.
    Vouching(Vouching),
    /// A state is on its way, from these donors.
    Fetching(Offer, Vec<PeerId>),
    /// It is here. Before it is loaded, this peer's branch is saved.
    Keeping(OrderId, Offer, Vec<PeerId>),
    /// The Executor loads it.
    Loading(OrderId, Offer, Vec<PeerId>),
    /// A past round is being replayed.
    Replaying(Replay),
}

impl CatchUp {
    pub(super) fn idle(&self) -> bool {
        matches!(self, Self::Idle)
    }
}

/// A state that donors offer, and the anchor that they say it opens its round with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offer {
    pub(super) state: StateId,
    pub(super) anchor: Digest,
}

impl Offer {
    /// The offer as a message.
    pub(super) fn message(self) -> TransferMessage {
        let Self { state, anchor } = self;
        TransferMessage::StateOffer { state, anchor }
    }
}

/// An offered state about which others are asked.
#[derive(Debug)]
pub(super) struct Vouching {
    pub(super) offer: Offer,
    pub(super) donors: Vec<PeerId>,
    /// What the others say that the state's round was opened with.
    pub(super) said: BTreeMap<PeerId, Digest>,
    /// How often they were asked.
    pub(super) asked: u8,
}
