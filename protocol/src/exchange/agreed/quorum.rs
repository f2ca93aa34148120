//! Partial all-reduce: a round continues with the first `enough` peers that are ready and those
//! that arrive within the grace period. Late peers take over the round's result, keep what they
//! trained on top, and take part in the next round. Only forming the group ends sooner; any agreed
//! exchange follows.
//!
//! Cost: none of its own. A round takes as long as its `enough`-th fastest peer and the grace, not
//! as long as the slowest; every late peer costs its helper the bytes of the decided aggregates
//! once more. The grace period is fixed by the plan, or twice the median lateness: of the `Ready`
//! messages that arrived after enough others, as each peer measures it by itself. The proposer's
//! period ends the wait for all, and none is longer than the deadline of the group.
//!
//! Fewer than a majority of the run never form a group, whatever `enough` says: two disjoint groups
//! of one round would leave two anchors. So this is eager-SGD's majority collective, with a count
//! and a grace, and not Prague's or WAGMA's small groups, which mix parameters and agree on
//! nothing.
//!
//! **Source:** Chen et al. 2016, "Revisiting Distributed Synchronous SGD" (backup workers); Li et
//! al. 2020, "Taming unbalanced training workloads in deep learning with partial collective
//! operations" (eager-SGD).

use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::{Grace, Time, Wait};

/// Whether a round has enough ready peers, and how long the others are still waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Enough {
    /// Since when there are enough, and when the wait for the others ends.
    reached: Option<(Time, Time)>,
}

impl Enough {
    /// This number of peers is ready. Once enough are, the others are waited for a little longer
    /// and no more: they are late, not suspected.
    pub(super) fn ready(&mut self, cx: &mut Context, count: usize) {
        let quorum = cx.plan.synchronization.quorum;
        let enough = usize::from(quorum.enough);
        if enough > 0 && self.reached.is_none() && count >= enough {
            let grace = match quorum.grace {
                Grace::Fixed(grace) => grace,
                Grace::Adaptive => cx.deadlines.grace(),
            };
            let until = cx.wait(Wait::Group, grace).min(cx.now + grace);
            self.reached = Some((cx.now, until));
            cx.timers.set(Timer::Exchange, until);
        }
    }

    /// Whether there are enough, and the others have had their time.
    pub(super) fn is_over(self, cx: &Context) -> bool {
        self.reached.is_some_and(|(_, until)| until <= cx.now)
    }

    /// Another peer is ready. If enough were ready before it, this measures its lateness.
    pub(super) fn record_lateness(self, cx: &mut Context) {
        if let Some((since, _)) = self.reached {
            cx.deadlines.record_lateness(cx.now.since(since));
        }
    }
}
