//! Which peers a round waits for and how much it trains: the settings that all exchanges with
//! common rounds share. Those of an asynchronous center are in [`CenterPlan`](crate::CenterPlan).

use crate::{Pace, Sampling};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// A plan's synchronization. By default peers wait for all others, all rounds have the same budget,
/// and all peers train in every round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronization {
    /// How the budget changes with the round.
    pub pace: Pace,
    /// How many ready peers are enough for a round.
    pub quorum: Quorum,
    /// Which of the peers train in a round.
    pub sampling: Sampling,
}

/// How many ready peers are enough for a round to continue without the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// The number of contributions that is enough (n of m, backup workers); zero means all. A group
    /// needs a majority in any case, because two groups of one round would split the run.
    pub enough: u16,
    /// How long a round still waits for the others after that.
    pub grace: Grace,
}

/// How long a round waits for the others once enough peers are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grace {
    /// A fixed time.
    Fixed(Duration),
    /// Twice the median lateness of the others in the last rounds, within the bounds of
    /// [`DeadlinePlan`](crate::DeadlinePlan).
    Adaptive,
}

impl Default for Grace {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}
