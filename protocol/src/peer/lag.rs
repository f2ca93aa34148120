//! How far a peer is in catching up with the others.

use crate::exchange::Scoped;
use crate::{Digest, FragmentId, OrderId, PeerId, SliceId, StateId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How far the catch-up is.
#[derive(Debug)]
pub(super) enum CatchUp {
    /// Nothing to catch up with.
    Idle,
    /// Donors were asked.
    Asking {
        asked: BTreeSet<PeerId>,
        offers: BTreeMap<StateId, Vec<PeerId>>,
    },
    /// A state is on its way, from these donors.
    Fetching(StateId, Vec<PeerId>),
    /// It is here. Before it is loaded, this peer's branch is saved.
    Keeping(OrderId, StateId, Vec<PeerId>),
    /// The Executor loads it.
    Loading(OrderId, StateId, Vec<PeerId>),
    /// A past round is being replayed.
    Replaying(Replay),
}

impl CatchUp {
    pub(super) fn idle(&self) -> bool {
        matches!(self, Self::Idle)
    }
}

/// A past round that is being replayed.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The peers that were asked, with the decisions that each named.
    pub(super) donors: BTreeMap<PeerId, BTreeMap<FragmentId, Scoped>>,
    /// How many of them must name the same decision.
    pub(super) need: usize,
    /// Those that named the decisions below. The first one serves their bytes.
    pub(super) holders: VecDeque<PeerId>,
    pub(super) decisions: BTreeMap<FragmentId, Scoped>,
    pub(super) fetching: BTreeMap<SliceId, Digest>,
    /// Fetched slices, until the round is applied and the history keeps them.
    pub(super) here: Vec<SliceId>,
    pub(super) applies: BTreeMap<OrderId, FragmentId>,
    pub(super) started: bool,
    pub(super) replayed: u32,
}

/// What this catch-up has learnt about the peers that help.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    /// How often each peer failed to help.
    pub(super) vain: BTreeMap<PeerId, u32>,
    /// How many donors must have pinned the same state.
    pub(super) need: usize,
    /// How often no state was pinned by enough donors.
    pub(super) disagreed: u32,
    /// How often a replay or a state failed although donors answered.
    pub(super) failures: u32,
}
