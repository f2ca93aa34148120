//! The ledger of pushes: whose acknowledgement is awaited, what comes back, and which encoded
//! slices are still needed.

use crate::core::context::Context;
use crate::{FragmentId, Order, PeerId, SliceId};
use std::collections::{BTreeMap, BTreeSet};

/// Mass that left this peer and is not known to have arrived.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pushes: BTreeMap<(SliceId, PeerId), f64>,
    returned: Vec<(SliceId, f64)>,
    /// Slices that a mix under way still reads.
    locked: BTreeSet<SliceId>,
    /// Slices whose bytes the Executor still holds for us.
    kept: BTreeSet<SliceId>,
}

impl Ledger {
    /// Notes a push.
    pub(super) fn push(&mut self, to: PeerId, slice: SliceId, mass: f64) {
        self.pushes.insert((slice, to), mass);
    }

    /// Forgets a push that arrived, or may have; gives its mass.
    pub(super) fn drop_push(&mut self, to: PeerId, slice: SliceId) -> Option<f64> {
        self.pushes.remove(&(slice, to))
    }

    /// A push surely did not arrive: its mass is mixed back in.
    pub(super) fn give_back(&mut self, to: PeerId, slice: SliceId) {
        if let Some(mass) = self.drop_push(to, slice) {
            self.returned.push((slice, mass));
        }
    }

    /// Takes what came back of one fragment; the slices stay locked until the mix is done.
    pub(super) fn take_returned(&mut self, fragment: FragmentId) -> Vec<(SliceId, f64)> {
        let (taken, left): (Vec<_>, Vec<_>) = self
            .returned
            .drain(..)
            .partition(|(slice, _)| slice.fragment == fragment);
        self.returned = left;
        taken
    }

    /// A mix will read this slice.
    pub(super) fn lock(&mut self, slice: SliceId) {
        self.locked.insert(slice);
        self.kept.insert(slice);
    }

    /// A mix is under way that reads slices which came back.
    pub(super) fn hold(&mut self, mix: SliceId) {
        self.locked.insert(mix);
    }

    /// The mix has read it, and with it all older slices that came back.
    pub(super) fn unlock(&mut self, slice: SliceId) {
        self.locked.remove(&slice);
    }

    /// Lets go of slices that nobody needs any more.
    pub(super) fn release(&mut self, cx: &mut Context) {
        if !self.locked.is_empty() {
            return; // a mix is under way and may read any of them
        }
        let needed = |slice: &SliceId| {
            self.returned.iter().any(|(s, _)| s == slice)
                || self
                    .pushes
                    .range((*slice, PeerId::from_bytes([0; 32]))..)
                    .next()
                    .is_some_and(|((s, _), _)| s == slice)
        };
        let free: Vec<SliceId> = self.kept.iter().filter(|s| !needed(s)).copied().collect();
        for slice in free {
            self.kept.remove(&slice);
            cx.order(Order::Release { slice });
        }
    }

    /// Weight that came back and waits to be mixed back in.
    pub(super) fn returned(&self) -> f64 {
        self.returned.iter().map(|(_, mass)| mass).sum()
    }

    /// Weight that is under way or waits to be mixed back in.
    pub(super) fn mass(&self) -> f64 {
        self.pushes.values().sum::<f64>() + self.returned.iter().map(|(_, m)| m).sum::<f64>()
    }
}
