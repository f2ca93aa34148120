//! Gradients that leave during the backward pass, in virtual time. The forward pass takes a third
//! of an inner step. Each fragment takes a share of the backward pass by its size, the last one
//! first.

use crate::lane::Running;
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::{Done, FragmentId, Input, Layers, Order, Plan, Time};
use std::collections::VecDeque;

/// Share of the forward pass in an inner step: one matrix product of three.
pub(crate) const FORWARD: f64 = 1.0 / 3.0;

/// When the backward pass of a training order completes each fragment, which takes this long and begins
/// after this share of it. Empty if all fragments leave at the end.
pub(crate) fn cuts(
    plan: &Plan,
    order: &Order,
    now: Time,
    (duration, forward): (Duration, f64),
) -> VecDeque<(Time, FragmentId)> {
    let Order::Train { round, cut, .. } = order else {
        return VecDeque::new();
    };
    if !cut || plan.overlap.layers == Layers::Together || duration.is_zero() {
        return VecDeque::new();
    }
    let ranges = plan.ranges();
    let len = ranges.last().map_or(1, |range| range.end).max(1) as f64;
    let share = |fragment: FragmentId| {
        let start = ranges.get(usize::from(fragment.0)).map_or(0, |r| r.start);
        1.0 - start as f64 / len
    };
    let at = |f| now + duration.mul_f64(forward + (1.0 - forward) * share(f));
    plan.fragments_of(*round).map(|f| (at(f), f)).collect()
}

impl Swarm<'_> {
    /// The backward pass of the running order has completed its next fragment.
    pub(crate) fn cut(&mut self, index: usize, running: &mut Running) {
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        if running.done.is_none() {
            // The mix lane does not change the parameters that this gradient belongs to.
            running.done = host.perform(&running.order, running.steps);
        }
        let Some((_, fragment)) = running.cuts.pop_front() else {
            return;
        };
        match &running.done {
            Some(Done::Trained(summary)) => {
                let (order, samples) = (running.id, summary.samples);
                self.answer_now(Input::Cut {
                    order,
                    fragment,
                    samples,
                });
            }
            // A failed order yields no fragments. Its answer follows at its usual end.
            _ => running.cuts.clear(),
        }
    }
}
