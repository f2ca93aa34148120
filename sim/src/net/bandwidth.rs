//! How long bytes occupy a machine's own uplink and downlink: one transfer after the other.

use core::time::Duration;
use murmurate_protocol::Time;

/// One direction of a machine's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pipe {
    /// Seconds per byte; zero for no limit.
    seconds_per_byte: f64,
    free_at: Time,
}

impl Pipe {
    /// With a rate in bytes per second; `None` for no limit.
    pub(crate) fn new(rate: Option<f64>) -> Self {
        Self {
            seconds_per_byte: rate.map_or(0.0, |rate| 1.0 / rate),
            free_at: Time::ZERO,
        }
    }

    /// How long `bytes` take when nothing is in the way.
    pub(crate) fn duration(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 * self.seconds_per_byte)
    }

    /// Queues `bytes` that are ready at `now`; returns when the last of them is through.
    pub(crate) fn pass(&mut self, now: Time, bytes: u64) -> Time {
        self.free_at = self.free_at.max(now) + self.duration(bytes);
        self.free_at
    }

    /// Forgets what was queued: the machine crashed.
    pub(crate) fn clear(&mut self, now: Time) {
        self.free_at = self.free_at.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_pass_one_after_the_other() {
        let mut pipe = Pipe::new(Some(1000.0));
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert_eq!(pipe.pass(at(0), 100), at(100));
        assert_eq!(pipe.pass(at(50), 100), at(200));
        assert_eq!(pipe.pass(at(500), 100), at(600));
        pipe.clear(at(550));
        assert_eq!(pipe.pass(at(550), 100), at(650));
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut pipe = Pipe::new(None);
        assert_eq!(
            pipe.pass(Time::from_nanos(7), u64::MAX),
            Time::from_nanos(7)
        );
    }
}
