//! The peers that said early that they are ready for a round.

use crate::limits::EARLY_MESSAGES_MAX;
use crate::{PeerId, Round};
use std::collections::BTreeSet;

/// Who was ready for a round before this peer was.
#[derive(Debug, Default)]
pub(super) struct EarlyReady(BTreeSet<(Round, PeerId)>);

impl EarlyReady {
    /// The peers that were ready for a round before this one.
    pub(super) fn of(&self, round: Round) -> BTreeSet<PeerId> {
        let ready = self.0.iter().filter(|(of, _)| *of == round);
        ready.map(|(_, peer)| *peer).collect()
    }

    pub(super) fn keep(&mut self, round: Round, peer: PeerId) {
        if self.0.len() < EARLY_MESSAGES_MAX {
            self.0.insert((round, peer));
        }
    }

    /// A peer is gone.
    pub(super) fn drop_of(&mut self, peer: PeerId) {
        self.0.retain(|(_, of)| *of != peer);
    }

    /// A round is over.
    pub(super) fn forget_until(&mut self, round: Round) {
        self.0.retain(|(of, _)| *of > round);
    }
}
