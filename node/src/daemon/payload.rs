//! Counts bytes of slices and states before the codec, 4 for each value. The network counts the
//! bytes after the codec.

use murmurate_protocol::{PeerId, PushOutcome, SliceId};
use std::collections::BTreeMap;

/// Bytes before the codec, by direction.
#[derive(Debug, Default)]
pub(super) struct Payload {
    /// Bytes of each push that has not ended.
    under_way: BTreeMap<(SliceId, PeerId), u64>,
    sent: u64,
    received: u64,
    /// Bytes of slices sent to and received from each linked peer.
    peers: BTreeMap<PeerId, (u64, u64)>,
}

impl Payload {
    /// Stores the size of a push that begins.
    pub(super) fn pushing(&mut self, to: PeerId, slice: SliceId, bytes: u64) {
        self.under_way.insert((slice, to), bytes);
    }

    /// Removes a push that ended. Its bytes count as sent if the receiver accepted them.
    pub(super) fn pushed(&mut self, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        let bytes = self.under_way.remove(&(slice, to)).unwrap_or(0);
        if outcome == PushOutcome::Delivered {
            self.sent += bytes;
            self.peers.entry(to).or_default().0 += bytes;
        }
    }

    /// Counts a slice that a peer pushed to this one.
    pub(super) fn arrived(&mut self, from: PeerId, bytes: u64) {
        self.received += bytes;
        self.peers.entry(from).or_default().1 += bytes;
    }

    /// Counts a fetched slice or state.
    pub(super) fn fetched(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Bytes sent and received since the start.
    pub(super) fn total(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Bytes sent to and received from one peer.
    pub(super) fn of(&self, peer: &PeerId) -> (u64, u64) {
        self.peers.get(peer).copied().unwrap_or_default()
    }

    /// Removes the peers that are no longer linked.
    pub(super) fn keep(&mut self, linked: impl Fn(&PeerId) -> bool) {
        self.peers.retain(|peer, _| linked(peer));
    }
}
