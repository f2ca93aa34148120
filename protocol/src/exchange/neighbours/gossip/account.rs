//! The account of pushed mass: mass that is not acknowledged yet, and mass that comes back because
//! its push certainly failed.

use crate::core::context::Context;
use crate::exchange::neighbours::ledger::SliceLedger;
use crate::{Event, FragmentId, PeerId, PushOutcome, SliceId, SliceMeta};
use std::collections::BTreeSet;

/// Mass that left this peer and is not known to have arrived.
#[derive(Debug, Default)]
pub(super) struct Account {
    ledger: SliceLedger<f64>,
    /// Mass that waits to be mixed back in, with the contribution that it was pushed with.
    returned: Vec<(SliceId, f64)>,
    /// Rounds' contributions that a mix under way still reads.
    locked: BTreeSet<SliceId>,
}

impl Account {
    /// Notes and orders a push.
    pub(super) fn push(
        &mut self,
        cx: &mut Context,
        to: (PeerId, SliceId),
        meta: SliceMeta,
        mass: f64,
    ) {
        self.ledger.push(cx, to, meta, mass);
    }

    /// A push ended. If it certainly failed, its mass is mixed back in. If its fate is unknown, the
    /// mass stays out, because it may count at the receiver already.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        (to, slice): (PeerId, SliceId),
        outcome: PushOutcome,
    ) {
        if let Some(weight) = self.ledger.ended(to, slice) {
            match outcome {
                PushOutcome::Delivered => {}
                PushOutcome::Unknown => cx.emit(Event::MassUncertain { peer: to, weight }),
                PushOutcome::Lost | PushOutcome::Refused => self.returned.push((slice, weight)),
            }
        }
        self.release(cx);
    }

    /// Takes what came back of one fragment. Its slices must be locked until the mix is done.
    pub(super) fn take_returned(&mut self, fragment: FragmentId) -> Vec<(SliceId, f64)> {
        let of_it = |(slice, _): &mut (SliceId, f64)| slice.fragment == fragment;
        self.returned.extract_if(.., of_it).collect()
    }

    /// A contribution is encoded, and a mix will read it.
    pub(super) fn lock(&mut self, slice: SliceId) {
        self.locked.insert(slice);
        self.ledger.spare(slice);
    }

    /// A mix of this round reads contributions that came back.
    pub(super) fn hold(&mut self, mix: SliceId) {
        self.locked.insert(mix);
    }

    /// The mix of this round has read its contribution, and older ones that came back.
    pub(super) fn unlock(&mut self, slice: Option<SliceId>) {
        if let Some(slice) = slice {
            self.locked.remove(&slice);
        }
    }

    /// Releases contributions that are acknowledged or mixed back in.
    pub(super) fn release(&mut self, cx: &mut Context) {
        // A mix under way may read any of them.
        if self.locked.is_empty() {
            let returned = &self.returned;
            self.ledger
                .release(cx, |slice| returned.iter().any(|(held, _)| held == slice));
        }
    }

    /// Weight that came back and waits to be mixed back in.
    pub(super) fn returned(&self) -> f64 {
        self.returned.iter().map(|(_, mass)| mass).sum()
    }

    /// Weight that is under way or waits to be mixed back in.
    pub(super) fn mass(&self) -> f64 {
        self.ledger.notes().sum::<f64>() + self.returned()
    }
}
