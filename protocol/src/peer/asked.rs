//! What others asked this peer for as a donor.

use crate::{OrderId, PeerId, Round, StateId, Time};

/// Peers that asked for a state or a past round, and the pinned state.
#[derive(Debug, Default)]
pub(super) struct Donor {
    pub(super) askers: Vec<PeerId>,
    pub(super) history_askers: Vec<(PeerId, Round)>,
    pub(super) pinning: Option<OrderId>,
    pub(super) pinned: Option<(StateId, Time)>,
}

impl Donor {
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.askers.retain(|p| *p != peer);
        self.history_askers.retain(|(p, _)| *p != peer);
    }
}
