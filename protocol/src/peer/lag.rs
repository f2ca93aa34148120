//! How far a peer is in catching up with the others.

use crate::exchange::Scoped;
use crate::limits::GRID_VIEW_PEERS_MAX;
use crate::wire::TransferMessage;
use crate::{Digest, FragmentId, OrderId, PeerId, Scores, SliceId, StateId};
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

/// A past round that is being replayed.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) donor: Option<PeerId>,
    /// Earlier donors, which owed slices for too long.
    pub(super) debtors: BTreeSet<PeerId>,
    pub(super) decisions: BTreeMap<FragmentId, Scoped>,
    /// The same with their proofs, where members sign.
    pub(super) proofs: BTreeMap<FragmentId, Scoped>,
    pub(super) fetching: BTreeMap<SliceId, Digest>,
    /// Fetched slices, until the round is applied and the history keeps them.
    pub(super) here: Vec<SliceId>,
    /// Where contributions are scored: what members say, as far as it is read.
    pub(super) scores: ReplayedScores,
    pub(super) applies: BTreeMap<OrderId, FragmentId>,
    pub(super) started: bool,
    pub(super) replayed: u32,
}

/// The scores of a round that is being replayed.
#[derive(Debug, Default)]
pub(super) struct ReplayedScores {
    /// Orders that read them; `None` until they are given.
    pub(super) reads: Option<BTreeMap<OrderId, PeerId>>,
    pub(super) said: BTreeMap<PeerId, Scores>,
}

/// What this catch-up has learnt about the peers that help.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// How often each peer failed to help.
    pub(super) vain: BTreeMap<PeerId, u32>,
    /// The donors of the state that was loaded last.
    pub(super) donors: Vec<PeerId>,
    /// How often a replay or a state failed although donors answered.
    pub(super) failures: u32,
    /// Donors that did not answer in time. What they offer later is welcome: a donor that exchanges a round
    /// answers when that has ended, and a path or a machine may be slower than the wait.
    pub(super) late: BTreeSet<PeerId>,
}

impl Helpers {
    /// These donors did not answer in time.
    pub(super) fn note_late(&mut self, donors: &BTreeSet<PeerId>) {
        let room = GRID_VIEW_PEERS_MAX.saturating_sub(self.late.len());
        self.late.extend(donors.iter().take(room));
    }
}
