//! Gradients that leave under the backward pass, in virtual time. A third of an inner step is its forward
//! pass; of the backward pass every fragment takes its share by values, the last first.

use crate::swarm::Swarm;
use crate::work::Running;
use core::time::Duration;
use murmurate_protocol::{Done, FragmentId, Input, Layers, Order, Plan, Time};
use std::collections::VecDeque;

/// The part of an inner step before its backward pass: one matrix product of three.
const FORWARD: f64 = 1.0 / 3.0;

/// When the backward pass of a training order is through with which fragment; none where they leave
/// together.
pub(crate) fn cuts(
    plan: &Plan,
    order: &Order,
    now: Time,
    duration: Duration,
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
    let at = |f| now + duration.mul_f64(FORWARD + (1.0 - FORWARD) * share(f));
    plan.fragments_of(*round).map(|f| (at(f), f)).collect()
}

impl Swarm<'_> {
    /// The backward pass is through with the next fragment of what runs.
    pub(crate) fn cut(&mut self, index: usize, running: &mut Running) {
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        if running.done.is_none() {
            // Nothing that the mix lane does meanwhile touches what the gradient is of.
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
            // Nothing leaves of what failed; its answer comes when its time is up.
            _ => running.cuts.clear(),
        }
    }
}
