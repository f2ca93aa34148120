//! A machine's two lanes: the virtual time of an order, and its execution at the end of that time.
//!
//! Training is executed at its end, because an interrupt may shorten it. The mix lane does not
//! change the training's data meanwhile. Gradients may leave during the backward pass: the forward pass takes a
//! third of an inner step, and each fragment takes a share of the backward pass by its size, the last one first.
//! Forward passes may begin while fragments are still exchanged.

use crate::due::Due;
use crate::error::SimError;
use crate::lane::{Pass, Running};
use crate::scenario::ComputeSpec;
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::{
    Done, Ending, FragmentId, Input, Lane, Layers, Order, OrderId, Plan, Round, Source, StepBudget,
    StoreId, Time, Unneeded,
};
use std::collections::VecDeque;

impl Swarm<'_> {
    /// Adds an order. On an idle lane an order that takes no time is executed at once.
    pub(crate) fn order(
        &mut self,
        index: usize,
        id: OrderId,
        order: Order,
    ) -> Result<(), SimError> {
        if let Order::Apply {
            round,
            ending: Ending::Void,
            ..
        } = &order
        {
            self.checks.voided(index, *round);
        }
        let lane = order.route().last();
        let Some(host) = self.slots[index].host.as_mut() else {
            return Ok(());
        };
        host.lane(lane).waiting.push_back((id, order));
        self.run_lane(index, lane)
    }

    /// Starts the next order if the lane is idle.
    fn run_lane(&mut self, index: usize, lane: Lane) -> Result<(), SimError> {
        loop {
            let mut slowness = self.slots[index].slowness;
            let compute = &self.scenario.compute;
            if lane == Lane::Train {
                let drift = (compute.drift, compute.drift_time);
                let drifts = &mut self.drifts;
                slowness *= self.slots[index].drift.slowness(self.now, drift, drifts);
            }
            let Some(host) = self.slots[index].host.as_mut() else {
                return Ok(());
            };
            if host.lane(lane).running.is_some() {
                return Ok(());
            }
            let Some((id, order)) = host.lane(lane).waiting.pop_front() else {
                return Ok(());
            };
            let step = self.scenario.compute.step.mul_f64(slowness);
            let steps = steps_of(&order, step);
            let forward = match &order {
                Order::Train {
                    round, cut: true, ..
                } if host.forward.round_begins(*round) => 0.0,
                _ => FORWARD,
            };
            let values = self.recipe.values_of(&order);
            let duration = duration_of(&order, compute, values, (step * steps, forward), slowness);
            let cuts = cuts_of(self.recipe.plan(), &order, self.now, (duration, forward));
            let running = Running {
                id,
                order,
                started: self.now,
                steps,
                step,
                end: self.now + duration,
                cuts,
                done: None,
            };
            if let Order::Train { round, .. } = running.order
                && running.order.begins_forward()
            {
                host.lane(lane).running = Some(running);
                self.forward_begins(index, round, step);
                return Ok(());
            }
            if duration.is_zero() {
                self.execute(index, running)?;
                continue;
            }
            let due = running.next();
            host.lane(lane).running = Some(running);
            self.schedule_work(index, lane, due);
            return Ok(());
        }
    }

    /// The running order of a lane needs attention at a time, and no longer at the one before.
    fn schedule_work(&mut self, index: usize, lane: Lane, at: Time) {
        let life = self.slots[index].life;
        if let Some(host) = self.slots[index].host.as_mut() {
            let state = host.lane(lane);
            state.serial += 1;
            let due = Due::Work {
                host: index,
                life,
                lane,
                serial: state.serial,
            };
            self.queue.push(at, due);
        }
    }

    /// The running order of a lane is due.
    pub(crate) fn work_ends(
        &mut self,
        index: usize,
        life: u32,
        lane: Lane,
        serial: u64,
    ) -> Result<(), SimError> {
        if self.slots[index].life != life {
            return Ok(());
        }
        let Some(host) = self.slots[index].host.as_mut() else {
            return Ok(());
        };
        let state = host.lane(lane);
        if state.serial != serial {
            return Ok(());
        }
        let Some(mut running) = state.running.take() else {
            return Ok(());
        };
        if running.cuts.is_empty() {
            self.execute(index, running)?;
            self.run_lane(index, lane)?;
        } else {
            self.cut(index, &mut running);
            let due = running.next();
            if let Some(host) = self.slots[index].host.as_mut() {
                host.lane(lane).running = Some(running);
                self.schedule_work(index, lane, due);
            }
        }
        self.feed_answers(index)
    }

    /// Performs a peer's request: training ends after the current inner step.
    pub(crate) fn interrupt(&mut self, index: usize) {
        let now = self.now;
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        let Some(running) = host.lane(Lane::Train).running.as_mut() else {
            return;
        };
        if !matches!(running.order, Order::Train { .. }) {
            return;
        }
        let spent = now.since(running.started).as_secs_f64();
        let taken = (spent / running.step.as_secs_f64()).ceil().max(1.0) as u32;
        if taken >= running.steps {
            return;
        }
        running.steps = taken;
        let end = running.started + running.step * taken;
        running.end = end;
        self.schedule_work(index, Lane::Train, end.max(now));
    }

    fn execute(&mut self, index: usize, running: Running) -> Result<(), SimError> {
        let Running {
            id,
            order,
            started,
            steps,
            done,
            ..
        } = running;
        let Some(host) = self.slots[index].host.as_mut() else {
            return Ok(());
        };
        if let Order::Save { branch: true, .. } = &order {
            self.counters.branches_saved += 1;
            self.answer_now(Input::Done {
                order: id,
                done: Done::Saved,
            });
            return Ok(());
        }
        if let Order::Save { snapshot, .. } = &order {
            let saved = self.snapshots.read(snapshot);
            let saved = saved.and_then(|snapshot| host.save(snapshot));
            let checkpoint = saved.map_err(|reason| SimError::Checkpoint {
                peer: index,
                reason,
            })?;
            self.slots[index].checkpoint = Some(checkpoint);
            self.answer_now(Input::Done {
                order: id,
                done: Done::Saved,
            });
            return Ok(());
        }
        if let Order::Encode {
            slice,
            from: Source::Store(StoreId::Branch),
            ..
        } = &order
        {
            self.checks.brings(index, slice.round, host);
        }
        let mut done = done.or_else(|| host.perform(&order, steps));
        self.checks.worked(index, host, &order);
        self.forward_hears(index, &order, done.as_ref());
        if let Some(Done::Trained(summary)) = &mut done
            && !order.begins_forward()
        {
            summary.seconds = self.now.since(started).as_secs_f64();
            summary.loss = self.speaker(index).loss(summary.loss);
            self.counters.inner_steps += summary.steps;
            self.counters.trained_s += summary.seconds;
        }
        if let Some(Done::Measured { loss }) = &mut done {
            *loss = self.speaker(index).score(*loss);
        }
        if let Some(Done::Failed(error)) = &done {
            self.counters
                .failures
                .push(format!("peer {index}: {error:?}"));
        }
        if let Some(done) = done {
            self.answer_now(Input::Done { order: id, done });
        }
        Ok(())
    }

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

    /// An order to begin a forward pass is the running one of the train lane.
    fn forward_begins(&mut self, index: usize, round: Round, step: Duration) {
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
    fn forward_hears(&mut self, index: usize, order: &Order, done: Option<&Done>) {
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
            Order::Apply { fragment, .. } if applied => {
                host.forward.end(usize::from(fragment.0), count);
                self.forward_moves(index);
            }
            Order::Load { .. } => host.forward.computed = None,
            Order::Forget(Unneeded::Forward(round)) if host.forward.break_off(*round) => {
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

    fn forward_ends(&mut self, index: usize, end: Time) {
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        if let Some(running) = host.lane(Lane::Train).running.as_mut() {
            running.end = end;
            self.schedule_work(index, Lane::Train, end);
        }
    }
}

/// How long a lane takes for an order that reads or writes this number of values. It gets the time of the
/// inner steps, and the share of the forward pass that is left to compute.
fn duration_of(
    order: &Order,
    compute: &ComputeSpec,
    values: u64,
    (steps, forward): (Duration, f64),
    slowness: f64,
) -> Duration {
    match order {
        // The forward pass is computed already.
        Order::Train { .. } if forward == 0.0 => steps.mul_f64(1.0 - FORWARD),
        Order::Train { .. } => steps,
        // A forward pass is about a third of an inner step.
        Order::Measure { batches, .. } => compute.step.mul_f64(slowness) * u32::from(*batches) / 3,
        _ => Duration::from_secs_f64(compute.mix_seconds_per_value * values as f64 * slowness),
    }
}

/// Number of inner steps within a budget, at least one.
fn steps_of(order: &Order, step: Duration) -> u32 {
    match order {
        Order::Train {
            budget: StepBudget::Steps(steps),
            ..
        } => *steps,
        Order::Train {
            budget: StepBudget::Time(time),
            ..
        } => (time.as_secs_f64() / step.as_secs_f64()).floor().max(1.0) as u32,
        _ => 0,
    }
}

/// Share of the forward pass in an inner step: one matrix product of three.
const FORWARD: f64 = 1.0 / 3.0;

/// When the backward pass of a training order completes each fragment, which takes this long and begins
/// after this share of it. Empty if all fragments leave at the end.
fn cuts_of(
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
