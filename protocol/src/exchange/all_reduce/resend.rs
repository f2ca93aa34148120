//! What surely did not arrive is pushed again, a few times.

use super::butterfly::Butterfly;
use super::group::bit;
use crate::peer::context::Context;
use crate::wire::ShardVersion;
use crate::{Part, PeerId, PushOutcome, SliceId};

/// How often a push that surely did not arrive is tried again.
const PUSH_RETRIES: u8 = 2;

impl Butterfly {
    /// A push ended. What surely did not arrive is tried again while it may still help.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        let open = !self.over() && self.slices.contains(&slice);
        let hopeful = self
            .group
            .index(to)
            .is_some_and(|i| self.hopeful & bit(i) != 0);
        if outcome != PushOutcome::Lost || !open || !hopeful {
            return;
        }
        let tries = self.retries.entry((to, slice)).or_default();
        if *tries >= PUSH_RETRIES {
            return;
        }
        *tries += 1;
        let meta = match slice.part {
            Part::Contribution => {
                let Some(bytes) = self.encoded.get(&slice.shard).copied() else {
                    return;
                };
                self.meta(bytes, self.group.members[self.group.me].weight, 0)
            }
            Part::Aggregate => {
                let part = self.part_of(&slice);
                let versions = self.held.get(&part).into_iter().flatten();
                let mine = |v: &&ShardVersion| self.aggregate(part, v) == slice;
                let Some(version) = versions.copied().find(|v| mine(&v)) else {
                    return;
                };
                let duty = self.duties.get(&part);
                let bytes = duty.filter(|d| d.attempt == slice.attempt).map(|d| d.bytes);
                let Some(bytes) = bytes else { return };
                self.meta(bytes, 0.0, version.contributors)
            }
        };
        self.push(cx, to, slice, meta);
    }
}
