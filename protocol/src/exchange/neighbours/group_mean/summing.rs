//! The answers to the two orders that make a mean.

use super::means::{Key, Mean, Means, Stage, mean_slice, tell_none};
use super::parts::Parts;
use crate::core::context::Context;
use crate::{Done, Order, OrderId, PeerId, SliceId, WorkError};
use std::collections::BTreeMap;

impl Means {
    /// An order was answered.
    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done, parts: &Parts) {
        let of_it = |mean: &Mean| match mean.stage {
            Stage::Summing { reduce, encode, .. } => [reduce, encode].contains(&order),
            _ => false,
        };
        let found = self.means.iter().find(|(_, mean)| of_it(mean));
        let Some(key) = found.map(|(key, _)| *key) else {
            return;
        };
        let Some(mut mean) = self.means.remove(&key) else {
            return;
        };
        match &mut mean.stage {
            Stage::Summing { reduce, failed, .. } if *reduce == order => {
                if let Done::Failed(error) = done {
                    *failed = true;
                    self.leave_out(cx, &mut mean.parts, error);
                }
            }
            Stage::Summing { failed, .. } => {
                let failed = *failed;
                self.encoded(cx, key, &mut mean, (done, failed));
            }
            _ => {}
        }
        self.means.insert(key, mean);
        self.serve(cx, key);
        self.advance(cx, key, parts);
    }

    /// The sum of a mean is encoded, or is not.
    fn encoded(&self, cx: &mut Context, key: Key, mean: &mut Mean, (done, failed): (&Done, bool)) {
        let slice = mean_slice(cx, key);
        mean.stage = match done {
            Done::Encoded { bytes, .. } if !failed => {
                let parts = mean.parts.iter();
                mean.rounds = parts.map(|(peer, part)| (*peer, part.round)).collect();
                let bytes = *bytes;
                Stage::Made { slice, bytes }
            }
            Done::Encoded { .. } => {
                cx.order(Order::Release { slice });
                Stage::Gathering
            }
            _ if failed => Stage::Gathering,
            _ => Stage::Failed,
        };
        if mean.stage == Stage::Gathering && !mean.parts.is_empty() {
            return; // the sum without the bad part is next
        }
        let parts = std::mem::take(&mut mean.parts);
        self.release_parts(cx, parts);
        if !matches!(mean.stage, Stage::Made { .. }) {
            mean.stage = Stage::Failed;
            tell_none(cx, key, &mut mean.askers);
        }
    }

    /// A sum failed: without a part that is bad it may not; otherwise nothing is left of it.
    fn leave_out(
        &self,
        cx: &mut Context,
        parts: &mut BTreeMap<PeerId, SliceId>,
        error: &WorkError,
    ) {
        let out = match error {
            WorkError::BadSlice { slice, reason, .. } if parts.values().any(|s| s == slice) => {
                cx.accuse(slice.origin, format!("a slice that is bad: {reason}"));
                parts.extract_if(.., |_, part| part == slice).collect()
            }
            _ => std::mem::take(parts),
        };
        self.release_parts(cx, out);
    }
}
