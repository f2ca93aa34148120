//! How far a peer is in catching up with the others.

use crate::peer::replay::Replay;
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::Offer;
use crate::{Digest, OrderId, PeerId};

/// How far the catch-up is.
#[derive(Debug)]
pub(super) enum CatchUp {
    /// Nothing to catch up with.
    Idle,
    /// Donors were asked.
    Asking {
        asked: SortedSet<PeerId>,
        offers: SortedMap<Offer, Vec<PeerId>>,
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

/// An offered state about which others are asked.
#[derive(Debug)]
pub(super) struct Vouching {
    pub(super) offer: Offer,
    pub(super) donors: Vec<PeerId>,
    /// What the others say that the state's round was opened with.
    pub(super) said: SortedMap<PeerId, Digest>,
    pub(super) asked: u8,
}
