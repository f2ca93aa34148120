//! The members of a register. A peer has a seat from everyone that let it in: an invite, a member or the
//! owner.
//!
//! What a seat holds does not depend on the order in which its certificates were heard of, so that all
//! registers hold the same in the end.

use crate::chain::Chain;
use crate::run::Run;
use murmurate_protocol::PeerId;
use std::collections::BTreeMap;

/// A peer, and the key that signed its certificate.
pub(crate) type Seat = (PeerId, PeerId);

const FIRST: PeerId = PeerId::from_bytes([0; 32]);
const LAST: PeerId = PeerId::from_bytes([0xff; 32]);

#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(BTreeMap<Seat, Chain>);

impl Seats {
    /// The seat that these certificates give, if they end with a peer.
    pub(crate) fn seat_of(chain: &Chain, run: &Run) -> Option<Seat> {
        Some((chain.peer()?, chain.issuer(run)))
    }

    pub(crate) fn get(&self, seat: &Seat) -> Option<&Chain> {
        self.0.get(seat)
    }

    pub(crate) fn insert(&mut self, seat: Seat, chain: Chain) {
        self.0.insert(seat, chain);
    }

    pub(crate) fn remove(&mut self, seat: &Seat) {
        self.0.remove(seat);
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Chain) -> bool) {
        self.0.retain(|_, chain| keep(chain));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All certificates, by peer.
    pub(crate) fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.0.values()
    }

    pub(crate) fn of(&self, peer: &PeerId) -> impl Iterator<Item = &Chain> {
        self.0
            .range((*peer, FIRST)..=(*peer, LAST))
            .map(|(_, chain)| chain)
    }

    /// The seats that an invite gave, with their certificates.
    pub(crate) fn by(&self, invite: PeerId) -> impl Iterator<Item = (&Seat, &Chain)> {
        self.0.iter().filter(move |((_, by), _)| *by == invite)
    }

    /// The seat among those of an invite whose peer used it last.
    pub(crate) fn last_by(&self, invite: PeerId) -> Option<(Seat, &Chain)> {
        let last = self.by(invite).max_by_key(|(_, chain)| chain.turn());
        last.map(|(seat, chain)| (*seat, chain))
    }
}
