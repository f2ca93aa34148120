//! A shard of the center at its owner: what arrives for it, and what it sends.

use crate::limits::VIEW_PEERS_MAX;
use crate::{Attempt, PeerId, Round, SliceId, Time};
use std::collections::BTreeMap;

/// A contribution that has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) from: PeerId,
    pub(super) slice: SliceId,
    /// The version of the center that its sender had pulled.
    pub(super) base: u64,
    /// Its sender's round.
    pub(super) round: Round,
}

/// A shard of the center that this peer owns, or owned.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// Raised with every move.
    pub(super) version: u64,
    /// Contributions that wait until enough are here to be taken in at once.
    pub(super) buffer: Vec<Arrival>,
    /// Contributions whose sender has pulled a newer version.
    pub(super) ahead: Vec<Arrival>,
    /// Who was asked for a newer copy, and until when.
    pub(super) asked: Option<(PeerId, Time)>,
    /// The last contribution of each sender that was taken in: its life and round.
    pub(super) taken: BTreeMap<PeerId, (Attempt, Round)>,
}

impl Shard {
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len() + self.ahead.len()
    }

    pub(super) fn waiting_of(&self, peer: PeerId) -> usize {
        let all = self.buffer.iter().chain(&self.ahead);
        all.filter(|a| a.from == peer).count()
    }

    /// Whether a contribution was taken in before, or one that its sender made after it: it is
    /// pushed again because no answer came.
    pub(super) fn is_old(&self, arrival: &Arrival) -> bool {
        let last = self.taken.get(&arrival.from);
        last.is_some_and(|(life, round)| {
            *life == arrival.slice.attempt && arrival.slice.round <= *round
        })
    }

    /// Notes that a contribution is taken in.
    pub(super) fn note_taken(&mut self, arrival: &Arrival, known: impl Fn(&PeerId) -> bool) {
        if self.taken.len() > VIEW_PEERS_MAX {
            self.taken.retain(|peer, _| known(peer));
        }
        let name = (arrival.slice.attempt, arrival.slice.round);
        self.taken.insert(arrival.from, name);
    }

    pub(super) fn asked_until(&self) -> Option<Time> {
        self.asked.map(|(_, until)| until)
    }
}

/// One version of a shard, encoded for the workers that wait for it.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Zero until it is encoded.
    pub(super) bytes: u64,
    /// Workers that get it: for which of their rounds, and how often it was pushed again.
    pub(super) to: BTreeMap<PeerId, (Round, u8)>,
    /// Pushes under way.
    pub(super) open: u32,
    /// Whether this peer's own round reads it.
    pub(super) mine: bool,
}
