//! Names of the slices of one fragment, and their release.

use super::fragment::FragmentRound;
use super::state::Task;
use crate::core::context::Context;
use crate::{Order, SliceId};
use std::collections::BTreeSet;

impl FragmentRound {
    /// Every slice whose bytes the Executor holds, or will hold once the open orders are done.
    pub(super) fn all_slices(&self) -> BTreeSet<SliceId> {
        let under_way = self
            .reduction
            .tasks
            .values()
            .filter_map(|task| match *task {
                Task::Contribution(shard) => {
                    Some(self.scope.contribution(shard, self.scope.group.me))
                }
                Task::Aggregate(shard, attempt) | Task::Noted(shard, attempt) => {
                    Some(self.own_aggregate(shard, attempt))
                }
                Task::Basis(shard, attempt) => {
                    Some(self.scope.basis(shard, self.scope.group.me, attempt))
                }
                Task::Second(shard, attempt) => {
                    Some(self.scope.second(shard, self.scope.group.me, attempt))
                }
                Task::Value(shard) => Some(self.next_value(shard)),
                Task::Combine(..) | Task::Fold(_) => None,
                Task::Stage(_) | Task::Measure(_) | Task::Read(_) => None,
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
        let mut gone = self.all_slices();
        gone.retain(|slice| !keep.contains(slice));
        // What others still lack of a decided fragment is kept, and goes out in its turn.
        cx.forget_sends(|slice| gone.contains(slice));
        for slice in gone {
            cx.order(Order::Release { slice });
        }
        self.transfers.slices.clear();
    }
}
