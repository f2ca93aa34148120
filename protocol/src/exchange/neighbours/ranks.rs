//! Which peers a topology means by its ranks: positions in a list of peers sorted by `PeerId`.

use crate::core::context::Context;
use crate::{Partners, PeerId, Topology};

/// A sorted list of peers with this one among them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ranks {
    peers: Vec<PeerId>,
    me: usize,
}

impl Ranks {
    pub(super) fn live(cx: &Context) -> Self {
        Self::among(cx.me(), cx.view.live().map(|(id, _)| id))
    }

    /// Over other peers, in ascending order, and this one.
    pub(super) fn among(me: PeerId, others: impl Iterator<Item = PeerId>) -> Self {
        let mut peers: Vec<PeerId> = others.collect();
        let rank = peers.partition_point(|id| *id < me);
        peers.insert(rank, me);
        Self { peers, me: rank }
    }

    /// How many peers there are, this one included.
    pub(super) fn count(&self) -> usize {
        self.peers.len()
    }

    /// The rank of this peer.
    pub(super) fn me(&self) -> usize {
        self.me
    }

    pub(super) fn peer(&self, rank: usize) -> Option<PeerId> {
        self.peers.get(rank).copied()
    }

    /// The peer of a rank, unless it is this one.
    pub(super) fn other(&self, rank: usize) -> Option<PeerId> {
        self.peer(rank).filter(|_| rank != self.me)
    }

    pub(super) fn partners(&self, topology: &dyn Topology, cx: &Context) -> Partners {
        self.partners_of(self.me, topology, cx)
    }

    /// The partners of a rank in the round, by the rates of links if all agree on them.
    pub(super) fn partners_of(
        &self,
        rank: usize,
        topology: &dyn Topology,
        cx: &Context,
    ) -> Partners {
        match cx.view.links.among(cx.round, &self.peers) {
            Some(rates) => topology.partners_by_rate(cx.round, rank, &rates),
            None => topology.partners(cx.round, rank, self.count()),
        }
    }

    pub(super) fn shares(&self, send: Vec<(usize, f64)>) -> Vec<(PeerId, f64)> {
        let named = send.into_iter();
        named
            .filter_map(|(rank, share)| Some((self.other(rank)?, share)))
            .collect()
    }
}
