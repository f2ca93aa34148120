//! Forward passes that begin while fragments are still exchanged, in virtual time. Each fragment has a share
//! of the forward pass by its size, the first one first. A layer begins when the one before it has ended and
//! the fragment is in force at this machine.

use crate::backward::FORWARD;
use crate::due::Due;
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::{Done, Lane, Order, Round, Time};

/// How far one machine's next forward pass is.
#[derive(Debug, Default)]
pub(crate) struct Forward {
    /// For each fragment whether its round has ended since the last order with a cut.
    ended: Vec<bool>,
    /// The pass under way.
    pass: Option<Pass>,
    /// The round whose forward pass is computed, with parameters that are in force.
    computed: Option<Round>,
    /// The last round whose forward pass was broken off.
    broken: Option<Round>,
}

#[derive(Debug)]
struct Pass {
    round: Round,
    /// The fragment that it computes with next.
    next: usize,
    /// When it has computed what it can.
    free: Time,
    /// Seconds of the whole pass.
    duration: Duration,
}

impl Forward {
    /// An order with a cut begins. Returns whether its forward pass is computed already.
    pub(crate) fn round_begins(&mut self, round: Round) -> bool {
        self.ended.fill(false);
        self.computed.take() == Some(round)
    }

    /// A fragment's round has ended. If it had before, its parameters may be others now.
    fn end(&mut self, fragment: usize, fragments: usize) {
        self.ended.resize(fragments, false);
        if std::mem::replace(&mut self.ended[fragment], true) {
            self.computed = None;
        }
    }

    /// Goes as far as the fragments in force allow, each with this share of the pass. Returns when the
    /// pass ends, once all are in force.
    fn advance(&mut self, now: Time, shares: &[f64]) -> Option<Time> {
        self.ended.resize(shares.len(), false);
        let pass = self.pass.as_mut()?;
        while pass.next < shares.len() && self.ended[pass.next] {
            let layer = pass.duration.mul_f64(shares[pass.next]);
            pass.free = pass.free.max(now) + layer;
            pass.next += 1;
        }
        let (free, round) = (pass.free, pass.round);
        (pass.next == shares.len()).then(|| {
            (self.pass, self.computed) = (None, Some(round));
            free
        })
    }

    /// The pass under way ends without what it lacks. Returns whether there was one.
    fn break_off(&mut self, round: Round) -> bool {
        self.broken = Some(round);
        self.pass.take().is_some()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_begins_when_it_is_in_force_and_the_one_before_has_ended() {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let shares = [0.5, 0.25, 0.25];
        let mut forward = Forward::default();
        forward.end(0, 3);
        forward.pass = Some(Pass {
            round: Round(4),
            next: 0,
            free: at(100),
            duration: Duration::from_millis(80),
        });
        // 40 ms of the first layer; the last one is in force before the one in the middle.
        assert_eq!(forward.advance(at(100), &shares), None);
        forward.end(2, 3);
        assert_eq!(forward.advance(at(110), &shares), None);
        forward.end(1, 3);
        assert_eq!(forward.advance(at(170), &shares), Some(at(210)));
        assert!(forward.round_begins(Round(4)) && !forward.round_begins(Round(4)));
        // What changes again is computed again.
        (0..3).for_each(|fragment| forward.end(fragment, 3));
        forward.computed = Some(Round(5));
        forward.end(1, 3);
        assert!(!forward.round_begins(Round(5)));
    }
}
