//! Counts bytes of slices and states before the codec, 4 for each value. The network counts the
//! bytes after the codec.

use murmurate_protocol::{PeerId, PushOutcome, SliceId, SortedMap};

/// Bytes before the codec, by direction.
#[derive(Debug, Default)]
pub(super) struct Payload {
    /// Bytes of each push that has not ended.
    under_way: SortedMap<(SliceId, PeerId), u64>,
    sent: u64,
    received: u64,
    /// Bytes of slices sent to and received from each linked peer.
    peers: SortedMap<PeerId, (u64, u64)>,
}

impl Payload {
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

    pub(super) fn arrived(&mut self, from: PeerId, bytes: u64) {
        self.received += bytes;
        self.peers.entry(from).or_default().1 += bytes;
    }

    pub(super) fn fetched(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Bytes sent and received since the start.
    pub(super) fn total(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    pub(super) fn of(&self, peer: &PeerId) -> (u64, u64) {
        self.peers.get(peer).copied().unwrap_or_default()
    }

    pub(super) fn keep(&mut self, linked: impl Fn(&PeerId) -> bool) {
        self.peers.retain(|peer, _| linked(peer));
    }
}
