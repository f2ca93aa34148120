//! Forward passes that begin while fragments are still exchanged, in virtual time.

use crate::backward::FORWARD;
use crate::due::Due;
use crate::pass::Pass;
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::{Done, Lane, Order, Round, Time};

impl Swarm<'_> {
    /// An order to begin a forward pass is the running one of the train lane.
    pub(crate) fn forward_begins(&mut self, index: usize, round: Round, step: Duration) {
        let now = self.now;
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        let forward = &mut host.forward;
        if forward.broken == Some(round) {
            self.forward_ends(index, now);
            return;
        }
        forward.pass = Some(Pass {
            round,
            next: 0,
            free: now,
            duration: step.mul_f64(FORWARD),
        });
        self.forward_moves(index);
    }

    /// The mix lane has performed an order.
    pub(crate) fn forward_hears(&mut self, index: usize, order: &Order, done: Option<&Done>) {
        let plan = self.recipe.plan();
        if !plan.overlap.layers.reach_forward() {
            return;
        }
        let (count, now) = (plan.fragments.len(), self.now);
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        let applied = matches!(done, Some(Done::Applied { .. }));
        match order {
            Order::Apply { fragment, .. }
            | Order::Gather { fragment, .. }
            | Order::Merge { fragment, .. }
            | Order::Void { fragment, .. }
                if applied =>
            {
                host.forward.end(usize::from(fragment.0), count);
                self.forward_moves(index);
            }
            Order::Load { .. } => host.forward.computed = None,
            Order::BreakOff { round } if host.forward.break_off(*round) => {
                self.forward_ends(index, now);
            }
            _ => {}
        }
    }

    fn forward_moves(&mut self, index: usize) {
        let ranges = self.recipe.plan().ranges();
        let all = ranges.last().map_or(1, |range| range.end).max(1) as f64;
        let shares: Vec<f64> = ranges.iter().map(|r| r.len() as f64 / all).collect();
        let now = self.now;
        let host = self.slots[index].host.as_mut();
        if let Some(end) = host.and_then(|host| host.forward.advance(now, &shares)) {
            self.forward_ends(index, end);
        }
    }

    /// The pass ends at a time.
    fn forward_ends(&mut self, index: usize, end: Time) {
        let life = self.slots[index].life;
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        let state = host.lane(Lane::Train);
        if let Some(running) = state.running.as_mut() {
            running.end = end;
            state.serial += 1;
            let due = Due::Work {
                host: index as u32,
                life,
                lane: Lane::Train,
                serial: state.serial,
            };
            self.queue.push(end, due);
        }
    }
}
