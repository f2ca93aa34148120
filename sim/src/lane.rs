//! One of a machine's two lanes: the order that runs, and the orders that wait.

use core::time::Duration;
use murmurate_protocol::{Done, FragmentId, Order, OrderId, Time};
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
    /// When it ends.
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
