//! Bytes of slices and states before the codec: 4 for each value. The network counts those after the codec.

use murmurate_protocol::{PeerId, PushOutcome, SliceId};
use std::collections::BTreeMap;

/// Bytes before the codec that went each way.
#[derive(Debug, Default)]
pub(super) struct Payload {
    /// Of every push under way.
    under_way: BTreeMap<(SliceId, PeerId), u64>,
    sent: u64,
    received: u64,
    /// Sent to and received from each linked peer, slices only.
    peers: BTreeMap<PeerId, (u64, u64)>,
}

impl Payload {
    /// A push begins.
    pub(super) fn pushing(&mut self, to: PeerId, slice: SliceId, bytes: u64) {
        self.under_way.insert((slice, to), bytes);
    }

    /// A push ended; its bytes count if the receiver took them.
    pub(super) fn pushed(&mut self, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        let bytes = self.under_way.remove(&(slice, to)).unwrap_or(0);
        if outcome == PushOutcome::Delivered {
            self.sent += bytes;
            self.peers.entry(to).or_default().0 += bytes;
        }
    }

    /// A peer pushed a slice to this one.
    pub(super) fn arrived(&mut self, from: PeerId, bytes: u64) {
        self.received += bytes;
        self.peers.entry(from).or_default().1 += bytes;
    }

    /// A slice or a state was fetched.
    pub(super) fn fetched(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Bytes sent and received so far.
    pub(super) fn total(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Bytes sent to and received from one peer.
    pub(super) fn of(&self, peer: &PeerId) -> (u64, u64) {
        self.peers.get(peer).copied().unwrap_or_default()
    }

    /// Forgets the peers that are not linked any more.
    pub(super) fn keep(&mut self, linked: impl Fn(&PeerId) -> bool) {
        self.peers.retain(|peer, _| linked(peer));
    }
}
