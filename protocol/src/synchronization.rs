//! Who waits for whom in a round, and how much a round trains: what of a plan's synchronization is
//! the same for every exchange that knows rounds. What an asynchronous center bounds is in its own
//! plan.

use crate::{Pace, Sampling};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// A plan's synchronization. By default peers wait for all others, all rounds are the same, and all
/// peers train in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronization {
    /// How the budget changes with the round.
    pub pace: Pace,
    /// With how many ready peers a round goes on.
    pub quorum: Quorum,
    /// Which of the peers train in a round.
    pub sampling: Sampling,
}

/// With how many ready peers a round goes on without the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// Contributions that are enough (n of m, backup workers); zero is all. Less than a
    /// majority never is: two groups of one round would part the run.
    pub enough: u16,
    /// How long the others are waited for after that.
    pub grace: Grace,
}

/// How long the others are waited for once there are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grace {
    /// So long.
    Fixed(Duration),
    /// Twice the median of how late the others were in the last rounds, within the bounds of
    /// [`DeadlinePlan`](crate::DeadlinePlan).
    Adaptive,
}

impl Default for Grace {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}
