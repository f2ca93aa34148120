//! Which peers a peer takes for the registrars of a founding, and who has registered with it.

use crate::limits::{FOUNDING_RETRY_TICKS, REGISTRARS_MAX};
use crate::rendezvous::rendezvous;
use crate::wire::PeerRecord;
use crate::{PeerId, Round, RunId};
use std::collections::BTreeMap;

/// The slot of the rendezvous hash that ranks registrars.
const SLOT: u8 = 3;

/// Registrars by rank, and the peers that are here.
#[derive(Debug)]
pub(super) struct Register {
    run: RunId,
    /// By rank, at most [`REGISTRARS_MAX`].
    registrars: BTreeMap<(u64, PeerId), PeerRecord>,
    /// Registrars that could not be reached lately, with the tick until which they are left out.
    lost: BTreeMap<PeerId, u32>,
    pub(super) here: BTreeMap<PeerId, PeerRecord>,
}

impl Register {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            registrars: BTreeMap::new(),
            lost: BTreeMap::new(),
            here: BTreeMap::new(),
        }
    }

    pub(super) fn rank(&self, peer: PeerId) -> (u64, PeerId) {
        (rendezvous(&self.run, Round(0), SLOT, peer), peer)
    }

    /// Takes a record into account; true if its peer is a registrar that was not known.
    pub(super) fn meet(&mut self, record: &PeerRecord) -> bool {
        let rank = self.rank(record.peer);
        if self.lost.contains_key(&record.peer) {
            return false;
        }
        let known = self.registrars.insert(rank, record.clone()).is_some();
        if self.registrars.len() > REGISTRARS_MAX {
            self.registrars.pop_first();
        }
        !known && self.registrars.contains_key(&rank)
    }

    /// The registrars, highest first.
    pub(super) fn registrars(&self) -> impl Iterator<Item = &PeerRecord> {
        self.registrars.values().rev()
    }

    /// The highest registrar.
    pub(super) fn first(&self) -> Option<&PeerRecord> {
        self.registrars().next()
    }

    pub(super) fn is_registrar(&self, peer: PeerId) -> bool {
        self.registrars.contains_key(&self.rank(peer))
    }

    /// The registrar of a peer.
    pub(super) fn home(&self, peer: PeerId) -> Option<&PeerRecord> {
        let count = self.registrars.len().max(1);
        let first = peer.as_bytes()[..8].iter();
        let pick = first.fold(0usize, |sum, byte| (sum << 8 | usize::from(*byte)) % count);
        self.registrars().nth(pick)
    }

    /// A peer cannot be reached; true if it was a registrar, which is left out for a while.
    pub(super) fn lose(&mut self, peer: PeerId, tick: u32) -> bool {
        let rank = self.rank(peer);
        self.here.remove(&peer);
        let registrar = self.registrars.remove(&rank).is_some();
        if registrar {
            self.lost.insert(peer, tick + 8 * FOUNDING_RETRY_TICKS);
        }
        registrar
    }

    /// Time passes: lost registrars may come back.
    pub(super) fn tick(&mut self, tick: u32) {
        self.lost.retain(|_, until| *until > tick);
    }
}
