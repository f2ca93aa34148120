//! One of a machine's two lanes: the order that runs, the orders that wait, and how far the next forward pass is, in
//! virtual time. Each fragment has a share of the pass by its size, the first one first. A layer begins when the one
//! before it has ended and the fragment is in force at this machine.

use core::time::Duration;
use murmurate_protocol::{Done, FragmentId, Order, OrderId, Round, Time};
use std::collections::VecDeque;

/// An order in progress.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) id: OrderId,
    pub(crate) order: Order,
    pub(crate) started: Time,
    /// For training: the number of inner steps and the seconds of one.
    pub(crate) steps: u32,
    pub(crate) step: Duration,
    pub(crate) end: Time,
    /// Fragments that are still in the backward pass, with the times at which they are complete.
    pub(crate) cuts: VecDeque<(Time, FragmentId)>,
    /// The answer, if the order was executed before its end.
    pub(crate) done: Option<Done>,
}

impl Running {
    /// The next time at which it needs attention.
    pub(crate) fn next(&self) -> Time {
        self.cuts.front().map_or(self.end, |(at, _)| *at)
    }
}

/// One lane: the running order and the waiting ones.
#[derive(Debug, Default)]
pub(crate) struct LaneState {
    pub(crate) running: Option<Running>,
    pub(crate) waiting: VecDeque<(OrderId, Order)>,
    /// Increases when the end of the running order changes, which makes the old event void.
    pub(crate) serial: u64,
}

impl LaneState {
    /// Number of orders.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }
}

/// How far one machine's next forward pass is.
#[derive(Debug, Default)]
pub(crate) struct Forward {
    /// For each fragment whether its round has ended since the last order with a cut.
    ended: Vec<bool>,
    pub(crate) pass: Option<Pass>,
    /// The round whose forward pass is computed, with parameters that are in force.
    pub(crate) computed: Option<Round>,
    /// The last round whose forward pass was broken off.
    pub(crate) broken: Option<Round>,
}

#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) round: Round,
    /// The fragment that it computes with next.
    pub(crate) next: usize,
    /// When it has computed the fragments that are in force.
    pub(crate) free: Time,
    /// Seconds of the whole pass.
    pub(crate) duration: Duration,
}

impl Forward {
    /// An order with a cut begins. Returns whether its forward pass is computed already.
    pub(crate) fn round_begins(&mut self, round: Round) -> bool {
        self.ended.fill(false);
        self.computed.take() == Some(round)
    }

    /// A fragment's round has ended. If it had before, its parameters may be others now.
    pub(crate) fn end(&mut self, fragment: usize, fragments: usize) {
        self.ended.resize(fragments, false);
        if std::mem::replace(&mut self.ended[fragment], true) {
            self.computed = None;
        }
    }

    /// Goes as far as the fragments in force allow, each with this share of the pass. Returns when the
    /// pass ends, once all are in force.
    pub(crate) fn advance(&mut self, now: Time, shares: &[f64]) -> Option<Time> {
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

    /// The pass under way ends without the fragments that it lacks. Returns whether there was one.
    pub(crate) fn break_off(&mut self, round: Round) -> bool {
        self.broken = Some(round);
        self.pass.take().is_some()
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
