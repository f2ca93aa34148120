//! The ledger of pushes: which peers have not acknowledged which slice of this peer, and which
//! slices are released as soon as nothing needs them.

use crate::core::context::Context;
use crate::{Order, PeerId, SliceId, SliceMeta};
use std::collections::{BTreeMap, BTreeSet};

/// Pushes under way, each with a note of the rule.
#[derive(Debug)]
pub(super) struct SliceLedger<N> {
    pushes: BTreeMap<(SliceId, PeerId), N>,
    /// Slices that only their pushes need.
    spare: BTreeSet<SliceId>,
}

impl<N> Default for SliceLedger<N> {
    fn default() -> Self {
        Self {
            pushes: BTreeMap::new(),
            spare: BTreeSet::new(),
        }
    }
}

impl<N> SliceLedger<N> {
    /// Pushes a slice, or pushes it again.
    pub(super) fn push(
        &mut self,
        cx: &mut Context,
        (to, slice): (PeerId, SliceId),
        meta: SliceMeta,
        note: N,
    ) {
        self.pushes.insert((slice, to), note);
        cx.push(to, slice, meta, 0);
    }

    /// A push ended: gives its note. The slice stays until [`SliceLedger::release`].
    pub(super) fn ended(&mut self, to: PeerId, slice: SliceId) -> Option<N> {
        self.pushes.remove(&(slice, to))
    }

    /// Pushes under way to a peer.
    pub(super) fn to(&self, peer: PeerId) -> impl Iterator<Item = (SliceId, &N)> {
        let to_it = self.pushes.iter().filter(move |((_, to), _)| *to == peer);
        to_it.map(|((slice, _), note)| (*slice, note))
    }

    /// The notes of all pushes under way.
    pub(super) fn notes(&self) -> impl Iterator<Item = &N> {
        self.pushes.values()
    }

    /// From now on only pushes need this slice.
    pub(super) fn spare(&mut self, slice: SliceId) {
        self.spare.insert(slice);
    }

    /// Releases the spare slices that no push needs, in order, but for those that the rule still
    /// reads.
    pub(super) fn release(&mut self, cx: &mut Context, reads: impl Fn(&SliceId) -> bool) {
        let pushes = &self.pushes;
        let first = PeerId::from_bytes([0; 32]);
        let pushed = |slice: &SliceId| {
            let mut from = pushes.range((*slice, first)..);
            from.next().is_some_and(|((next, _), _)| next == slice)
        };
        let free = |slice: &SliceId| !pushed(slice) && !reads(slice);
        for slice in self.spare.extract_if(.., free) {
            cx.order(Order::Release { slice });
        }
    }
}
