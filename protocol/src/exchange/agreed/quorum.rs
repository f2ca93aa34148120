//! Partial all-reduce: a round goes on with the first `enough` peers that are ready and those that
//! arrive within the grace. The late take the round's outcome over with what they trained on top,
//! and are part of the next. It is the forming of the group that ends sooner; what follows is any
//! exchange that agrees.
//!
//! Cost: none of its own. A round takes as long as its `enough`-th fastest peer and the grace, not
//! as long as the slowest; every peer that is late costs its helper the bytes of the decided
//! aggregates once more. The grace is a time of the plan, or twice the median of how late the late
//! have been: what a peer measured of the `Ready` that came after those which were enough, so no
//! two peers' need be equal. The proposer's ends the wait for all, and none outlasts the deadline
//! of the group itself.
//!
//! Fewer than a majority of the run never form a group, whatever `enough` says: two disjoint groups
//! of one round would leave two anchors. So this is eager-SGD's majority collective, with a count
//! and a grace, and not Prague's or WAGMA's small groups, which mix parameters and agree on
//! nothing.
//!
//! **Source:** Chen et al. 2016, "Revisiting Distributed Synchronous SGD" (backup workers); Li et
//! al. 2020, "Taming unbalanced training workloads in deep learning with partial collective
//! operations" (eager-SGD).

use super::grouping::Grouping;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::{Grace, PeerId, Time, Wait};
use core::time::Duration;

/// Since when a round has enough peers, and until when the rest is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enough {
    since: Time,
    until: Time,
}

impl Grouping {
    /// Once enough are ready, the others are waited for a little longer and no more: they are late,
    /// not suspected.
    pub(super) fn start_grace(&mut self, cx: &mut Context) {
        let quorum = cx.plan.synchronization.quorum;
        let enough = usize::from(quorum.enough);
        if enough > 0 && self.enough.is_none() && self.all_ready(cx).len() >= enough {
            let grace = match quorum.grace {
                Grace::Fixed(grace) => grace,
                Grace::Adaptive => cx.deadlines.grace(),
            };
            let until = cx.wait(Wait::Group, grace).min(cx.now + grace);
            let since = cx.now;
            self.enough = Some(Enough { since, until });
            cx.timers.set(Timer::Exchange, until);
        }
    }

    pub(super) fn grace_is_over(&self, cx: &Context) -> bool {
        self.enough.is_some_and(|enough| enough.until <= cx.now)
    }

    /// A peer is ready for this round, perhaps after those who were enough. If this peer did not
    /// train, its wait does not show how much later than others that peer is.
    pub(super) fn note_ready(&self, cx: &mut Context, from: PeerId) {
        let (round, me) = (cx.round, cx.me());
        if cx.plan.draws(round, me) && cx.plan.draws(round, from) {
            let waited = cx.now.since(self.since);
            cx.deadlines.record(Wait::Group, from, waited);
        }
        if let Some(enough) = self.enough {
            cx.deadlines.record_lateness(cx.now.since(enough.since));
        }
    }
}

/// How long the others are waited for. A peer that did not train waits while they do, as long as
/// anything may take: those who trained miss the late much sooner, and one of them proposes.
pub(super) fn allowed(cx: &Context, settled: impl IntoIterator<Item = PeerId>) -> Duration {
    match cx.plan.draws(cx.round, cx.me()) {
        true => cx.deadlines.allow(Wait::Group, settled),
        false => cx.deadlines.ceiling(),
    }
}

/// Who of the ready peers may propose: of those who trained, because the others wait for longer.
pub(super) fn active(cx: &Context, ready: Vec<PeerId>) -> Vec<PeerId> {
    let drawn = |id: &PeerId| cx.plan.draws(cx.round, *id);
    let active: Vec<PeerId> = ready.iter().copied().filter(drawn).collect();
    if active.is_empty() { ready } else { active }
}
