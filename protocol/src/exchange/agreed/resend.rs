//! Repeats pushes that certainly failed, a few times.

use super::fragment::FragmentRound;
use crate::core::context::Context;
use crate::{Part, PeerId, PushOutcome, SliceId};

/// How often a push that certainly failed is repeated.
const PUSH_RETRIES: u8 = 2;

impl FragmentRound {
    /// A push ended. One that certainly failed is repeated while it can still help.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        // The exchange may have ended here while others still lack this aggregate.
        let open = self.transfers.slices.contains(&slice)
            && (!self.over() || slice.part == Part::Aggregate);
        let hopeful = self
            .scope
            .group
            .index(to)
            .is_some_and(|i| self.hopeful.has(i));
        if outcome != PushOutcome::Lost || !open || !hopeful {
            return;
        }
        let tries = self.transfers.retries.entry((to, slice)).or_default();
        if *tries >= PUSH_RETRIES {
            return;
        }
        *tries += 1;
        let Some(meta) = self.transfers.metas.get(&slice).copied() else {
            return;
        };
        self.push(cx, to, slice, meta);
    }
}
