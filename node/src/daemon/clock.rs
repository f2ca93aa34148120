//! The daemon's clock. It reads the Unix time once and advances by the monotonic clock, so it never
//! goes back when the system's clock is set.

use crate::api::Clock;
use murmurate_protocol::Time;
use murmurate_strategies::executor::Stopwatch;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since the Unix epoch that never goes back.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    epoch: Time,
    start: Instant,
}

impl SteadyClock {
    /// Reads the system's clock once.
    pub fn new() -> Self {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            epoch: Time::ZERO + unix,
            start: Instant::now(),
        }
    }

    /// Converts `time` to an instant of the monotonic clock.
    pub fn instant(&self, time: Time) -> Instant {
        // A deadline more than a year ahead is never reached, so it is cut to a year.
        let ahead = time
            .since(self.epoch)
            .min(Duration::from_secs(365 * 24 * 3600));
        self.start + ahead
    }
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Time {
        self.epoch + self.start.elapsed()
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
