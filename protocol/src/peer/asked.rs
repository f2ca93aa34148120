//! What others asked this peer for as a donor.

use super::lag::Offer;
use crate::limits::OPENINGS_MAX;
use crate::{Base, Digest, OrderId, PeerId, Time};
use std::collections::VecDeque;

/// Peers that asked for a state or a past round, and the pinned state.
#[derive(Debug, Default)]
pub(super) struct Donor {
    pub(super) askers: Vec<PeerId>,
    pub(super) history_askers: Vec<(PeerId, Base)>,
    /// The order to pin a state, and the hash of its parameters.
    pub(super) pinning: Option<(OrderId, Digest)>,
    pub(super) pinned: Option<(Offer, Time)>,
    /// The rounds that this peer began last, and with which parameters.
    pub(super) opened: VecDeque<Base>,
}

impl Donor {
    /// This peer begins a round. It knows no more of later ones from which it went back.
    pub(super) fn open(&mut self, opening: Base) {
        while self
            .opened
            .back()
            .is_some_and(|last| last.round >= opening.round)
        {
            self.opened.pop_back();
        }
        self.opened.push_back(opening);
        if self.opened.len() > OPENINGS_MAX {
            self.opened.pop_front();
        }
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.askers.retain(|p| *p != peer);
        self.history_askers.retain(|(p, _)| *p != peer);
    }
}
