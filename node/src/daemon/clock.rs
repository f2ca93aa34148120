//! The daemon's clock. It reads the Unix time once and advances by a clock that goes on while the machine
//! sleeps, so it never goes back when the system's clock is set, and after a sleep it is right.

use crate::api::Clock;
use murmurate_protocol::Time;
use murmurate_strategies::executor::Stopwatch;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since the Unix epoch that never goes back.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    epoch: Time,
    start: Duration,
}

/// Time since the machine was started, its sleep included. `Instant` stands still in sleep on Linux.
fn since_boot() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const AWAKE_OR_ASLEEP: ClockId = ClockId::Boottime;
    // On macOS and the BSDs this one goes on in sleep.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const AWAKE_OR_ASLEEP: ClockId = ClockId::Monotonic;
    Duration::try_from(clock_gettime(AWAKE_OR_ASLEEP)).unwrap_or_default()
}

impl SteadyClock {
    /// Reads the system's clock once.
    pub fn new() -> Self {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            epoch: Time::ZERO + unix,
            start: since_boot(),
        }
    }

    /// Converts `time` to an instant of the monotonic clock.
    pub fn instant(&self, time: Time) -> Instant {
        // A deadline more than a year ahead is never reached, so it is cut to a year.
        let ahead = time
            .since(self.now())
            .min(Duration::from_secs(365 * 24 * 3600));
        Instant::now() + ahead
    }
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Time {
        self.epoch + since_boot().saturating_sub(self.start)
    }
}

/// Measures the duration of training by the monotonic clock.
#[derive(Debug)]
pub(super) struct WallStopwatch(Instant);

impl WallStopwatch {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Stopwatch for WallStopwatch {
    fn start(&mut self) {
        self.0 = Instant::now();
    }

    fn elapsed(&mut self, _steps: u64) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_tells_unix_time_and_converts_back() {
        let clock = SteadyClock::new();
        let now = clock.now();
        assert!(now.as_secs_f64() > 1.7e9, "after 2023");
        let later = clock.instant(now + Duration::from_secs(5));
        let ahead = later.saturating_duration_since(Instant::now());
        assert!(ahead <= Duration::from_secs(5) && ahead > Duration::from_secs(4));
        assert!(clock.instant(Time::NEVER) > Instant::now() + Duration::from_secs(3600));
    }
}
