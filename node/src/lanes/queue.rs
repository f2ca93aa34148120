//! What goes in and out of the lanes: the queue of one lane, and what the lanes tell the driver. A queue never refuses
//! work: what does not fit waits here, and the driver takes no more from the network until it fits.

use murmurate_protocol::wire::Message;
use murmurate_protocol::{Done, FragmentId, OrderId, PeerId};
use std::collections::VecDeque;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

#[derive(Debug)]
pub(super) struct Queue<T> {
    lane: Sender<T>,
    waiting: VecDeque<T>,
}

impl<T> Queue<T> {
    pub(super) fn new(lane: Sender<T>) -> Self {
        Self {
            lane,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn push(&mut self, work: T) {
        self.waiting.push_back(work);
        self.flush();
    }

    /// Moves what waits to the lane. Returns whether all of it fitted.
    pub(super) fn flush(&mut self) -> bool {
        while let Some(work) = self.waiting.pop_front() {
            match self.lane.try_send(work) {
                Ok(()) => {}
                Err(TrySendError::Full(work)) => {
                    self.waiting.push_front(work);
                    return false;
                }
                // The lane ended early and has printed the reason; the driver notices the missing
                // answer.
                Err(TrySendError::Closed(_)) => tracing::error!("a lane's thread has ended"),
            }
        }
        true
    }

    /// Hands over what waits, and ends the queue. Waits for the lane.
    pub(super) fn end(self) {
        for work in self.waiting {
            if self.lane.blocking_send(work).is_err() {
                return;
            }
        }
    }
}

#[derive(Debug)]
pub(crate) enum Answer {
    Done(OrderId, Done),
    /// The backward pass of a training order has finished a fragment. The `u64` is the samples in
    /// the batch.
    Cut(OrderId, FragmentId, u64),
    /// A message for the operator.
    Note(String),
    Signed(PeerId, Message),
    /// The signatures of a message from this peer are checked; `None` if one is wrong.
    Checked(PeerId, Option<Message>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[test]
    fn a_full_lane_delays_work_and_loses_none() {
        let (lane, mut work) = mpsc::channel(2);
        let mut queue = Queue::new(lane);
        (0..5).for_each(|number| queue.push(number));
        assert!(!queue.flush(), "the lane is full");
        assert_eq!(work.try_recv(), Ok(0));
        assert_eq!(work.try_recv(), Ok(1));
        assert!(!queue.flush());
        assert_eq!(work.try_recv(), Ok(2));
        assert!(queue.flush());
        queue.end();
        assert_eq!(work.try_recv(), Ok(3));
        assert_eq!(work.try_recv(), Ok(4));
        assert!(work.try_recv().is_err());
    }
}
