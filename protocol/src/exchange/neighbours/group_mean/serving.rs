//! Hands a mean that is made to the members that ask for it.

use super::means::{Key, Means, Stage};
use crate::core::context::Context;
use crate::{PeerId, PushOutcome, SliceId, SliceMeta, Tag};

/// How often a mean is pushed at most to one that asks for it.
const PUSHES_MAX: u8 = 2;

impl Means {
    /// Pushes a mean to all that asked for it.
    pub(super) fn serve(&mut self, cx: &mut Context, key: Key) {
        let Some(mean) = self.means.get_mut(&key) else {
            return;
        };
        if !matches!(mean.stage, Stage::Made { .. }) {
            return;
        }
        for to in std::mem::take(&mut mean.askers) {
            self.push(cx, key, to, 1);
        }
    }

    /// Pushes a mean to a member, unless it is on its way.
    fn push(&mut self, cx: &mut Context, key: Key, to: PeerId, times: u8) {
        let Some(made) = self.made(key, to) else {
            return;
        };
        if self.ledger.to(to).any(|(slice, _)| slice == made.slice) {
            return;
        }
        let meta = SliceMeta {
            of: 1,
            bytes: made.bytes,
            tag: Tag::GroupMean {
                round: key.1,
                parts: made.parts,
                own: made.own,
            },
        };
        self.ledger.push(cx, (to, made.slice), meta, times);
    }

    /// The push of a mean ended. One that was lost is pushed once more; after that its member asks
    /// again.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        (to, slice): (PeerId, SliceId),
        outcome: PushOutcome,
    ) {
        let Some(times) = self.ledger.ended(to, slice) else {
            return;
        };
        if outcome == PushOutcome::Lost && times < PUSHES_MAX {
            self.push(cx, (slice.fragment, slice.round), to, times + 1);
        }
        self.ledger.release(cx, |_| false);
    }
}
