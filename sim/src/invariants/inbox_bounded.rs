//! Everything that waits at a peer is bounded: slices to mix, stored slices, queued orders.

use crate::host::Host;
use murmurate_protocol::Plan;
use murmurate_protocol::limits::{
    BALLOTS_MAX, EARLY_SCHEDULED_MAX, EARLY_SLICES_MAX, HISTORY_ROUNDS_MAX, INBOX_SLICES_MAX,
};

#[derive(Debug)]
pub(super) struct InboxBounded {
    waiting_max: usize,
    slices_max: usize,
    orders_max: usize,
}

impl InboxBounded {
    pub(super) fn new(plan: &Plan, peers: usize) -> Self {
        let fragments = plan.fragments.len();
        // A round holds at most every member's contribution to this peer's shard and the aggregate
        // of every shard, in each ballot. The history holds one aggregate for each shard.
        let round = fragments * peers * (2 + usize::from(BALLOTS_MAX));
        let history = fragments * peers * HISTORY_ROUNDS_MAX;
        let inbox = INBOX_SLICES_MAX * fragments;
        let early = if plan.schedule.relays() {
            EARLY_SCHEDULED_MAX
        } else {
            EARLY_SLICES_MAX
        };
        Self {
            waiting_max: inbox * peers,
            slices_max: round + history + (inbox + early) * peers,
            orders_max: 8 * fragments * peers + 64,
        }
    }

    pub(super) fn check(&self, host: &Host) -> Result<(), String> {
        let over = |what: &str, count: usize, max: usize| {
            if count <= max {
                Ok(())
            } else {
                Err(format!("{count} {what}, at most {max} may be"))
            }
        };
        over(
            "slices wait to be mixed",
            host.peer.inbox_len(),
            self.waiting_max,
        )?;
        over("slices are kept", host.slices(), self.slices_max)?;
        over("orders wait", host.orders(), self.orders_max)
    }
}
