//! Names of the slices of one fragment, and their release.

use super::ballot::ShardVersion;
use super::fragment::FragmentRound;
use super::state::Task;
use crate::core::context::Context;
use crate::{Attempt, Order, Part, SliceId};
use std::collections::BTreeSet;

impl FragmentRound {
    /// The name of a member's contribution to a shard.
    pub(super) fn contribution(&self, shard: u16, member: usize) -> SliceId {
        SliceId {
            round: self.scope.round,
            fragment: self.scope.fragment,
            shard: if self.scope.gathered { 0 } else { shard },
            part: Part::Contribution,
            origin: self.scope.group.peer(member),
            attempt: Attempt::FIRST,
        }
    }

    /// Every slice whose bytes the Executor holds, or will hold once the open orders are done.
    pub(super) fn all_slices(&self) -> BTreeSet<SliceId> {
        let under_way = self
            .reduction
            .tasks
            .values()
            .filter_map(|task| match *task {
                Task::Contribution(shard) => Some(self.contribution(shard, self.scope.group.me)),
                Task::Aggregate(shard, attempt) => Some(SliceId {
                    part: Part::Aggregate,
                    attempt,
                    ..self.contribution(shard, self.scope.group.me)
                }),
                Task::Value(shard) => Some(self.next_value(shard)),
                Task::Combine(..) | Task::Fold(_) => None,
            });
        self.transfers
            .slices
            .iter()
            .copied()
            .chain(under_way)
            .collect()
    }

    /// Releases every slice but those in `keep`.
    pub(super) fn release(&mut self, cx: &mut Context, keep: &[SliceId]) {
        for slice in self.all_slices() {
            if !keep.contains(&slice) {
                cx.order(Order::Release { slice });
            }
        }
        self.transfers.slices.clear();
    }

    /// The name of a version's bytes.
    pub(super) fn aggregate(&self, shard: u16, version: &ShardVersion) -> SliceId {
        SliceId {
            round: self.scope.round,
            fragment: self.scope.fragment,
            shard: if self.scope.gathered { 0 } else { shard },
            part: Part::Aggregate,
            origin: version.owner,
            attempt: version.attempt,
        }
    }

    /// The name of a member's value of a shard in one of its stages.
    pub(super) fn value(&self, shard: u16, member: usize, stage: usize) -> SliceId {
        let contribution = self.contribution(shard, member);
        match stage {
            0 => contribution,
            _ => SliceId {
                part: Part::Partial,
                attempt: Attempt(stage as u8),
                ..contribution
            },
        }
    }
}
