//! The timer table: at most one deadline per kind. `poll_timeout` is the minimum.

use crate::Time;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Enough peers to begin, or a state to start from.
    Join,
    /// The exchange that is under way.
    Exchange,
    /// The state or history that is being fetched.
    CatchUp,
    /// The next sign of life, and with it anti-entropy and dialling.
    Alive,
    /// The next step of founding a run.
    Founding,
    /// A finished peer's last service to others.
    Linger,
}

const KINDS: usize = 6;

/// Deadlines by kind.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    at: [Option<Time>; KINDS],
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        self.at[timer as usize] = Some(at);
    }

    /// Takes a deadline out.
    pub(crate) fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = None;
    }

    /// Takes out a deadline that has passed; false while it has not.
    pub(crate) fn expired(&mut self, timer: Timer, now: Time) -> bool {
        let slot = &mut self.at[timer as usize];
        let passed = slot.is_some_and(|at| at <= now);
        if passed {
            *slot = None;
        }
        passed
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.at.iter().flatten().min().copied()
    }
}
