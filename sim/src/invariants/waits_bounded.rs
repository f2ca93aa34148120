//! No wait is longer than its deadline, but for the time in which its machine stands still, and no deadline
//! passes unnoticed.

use core::time::Duration;
use murmurate_protocol::{Event, Time};

/// Tolerance. Deadlines are exact to the nanosecond here; rounding of durations may add a few.
const ROUNDING: Duration = Duration::from_nanos(10);

pub(super) fn check(event: &Event, paused: Duration) -> Result<(), String> {
    match event {
        Event::Waited {
            wait,
            waited,
            allowed,
            ..
        } if *waited > *allowed + paused + ROUNDING => Err(format!(
            "waited {waited:?} for {wait:?}, allowed were {allowed:?}"
        )),
        _ => Ok(()),
    }
}

/// A past deadline that still exists after the input that should have handled it.
pub(super) fn check_deadline(deadline: Option<Time>, now: Time) -> Result<(), String> {
    match deadline {
        Some(at) if at + STALE < now => Err(format!("the deadline of {at} was left behind")),
        _ => Ok(()),
    }
}

/// Timers fire at their time. An input at the same instant may come first.
const STALE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::Wait;

    #[test]
    fn a_wait_beyond_its_deadline_is_found() {
        let waited = |ms| Event::Waited {
            wait: Wait::Partners,
            waited: Duration::from_millis(ms),
            allowed: Duration::from_millis(10),
            expired: true,
        };
        assert!(check(&waited(10), Duration::ZERO).is_ok());
        assert!(check(&waited(11), Duration::ZERO).is_err());
        assert!(check(&waited(11), Duration::from_millis(1)).is_ok());
        let (early, late) = (Time::from_nanos(5), Time::from_nanos(9_000_000));
        assert!(check_deadline(Some(early), late).is_err());
        assert!(check_deadline(Some(late), early).is_ok());
    }
}
