//! A token bucket, which limits how fast one remote may send.

use std::time::Duration;
use tokio::time::Instant;

/// Fills at a steady rate up to its capacity. Taking more than it contains requires a wait.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    tokens: f64,
    capacity: f64,
    per_second: f64,
    filled: Instant,
}

impl Bucket {
    /// Creates a full bucket of `capacity` tokens that gains `per_second` tokens each second.
    pub(super) fn new(capacity: u32, per_second: u32, now: Instant) -> Self {
        let capacity = f64::from(capacity);
        Self {
            tokens: capacity,
            capacity,
            per_second: f64::from(per_second),
            filled: now,
        }
    }

    /// Takes `count` tokens and returns how long to wait before continuing.
    pub(super) fn take(&mut self, count: f64, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() * self.per_second;
        self.filled = now;
        self.tokens = (self.tokens + gained).min(self.capacity) - count;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.per_second).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_the_rest_is_paid_in_time() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, 2, start);
        assert_eq!(bucket.take(10.0, start), Duration::ZERO);
        assert_eq!(bucket.take(1.0, start), Duration::from_millis(500));
        let later = start + Duration::from_secs(60);
        assert_eq!(
            bucket.take(10.0, later),
            Duration::ZERO,
            "never above the capacity"
        );
        assert_eq!(bucket.take(2.0, later), Duration::from_secs(1));
    }
}
