//! How fast: a token bucket, which limits how fast one remote may send, and the pauses between attempts.

use murmurate_protocol::{PeerId, SortedMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Fills at a steady rate up to its capacity. Taking more than it contains requires a wait.
#[derive(Clone, Debug)]
struct Bucket {
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

    /// True where it would contain no more if it had been new.
    fn is_full(&self, now: Instant) -> bool {
        self.clone().take(self.capacity, now) == Duration::ZERO
    }
}

/// The pause after a number of failures: it doubles with each, from the first one to the longest.
pub(super) fn doubled(first: Duration, longest: Duration, failures: u32) -> Duration {
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(longest)
}

/// What each peer may send: one bucket for a peer, however many streams and connections it opens. Clones
/// share the buckets.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    capacity: u32,
    per_second: u32,
    /// Those that are not full, and some that have become full since. Only members have one.
    buckets: Arc<Mutex<SortedMap<PeerId, Bucket>>>,
}

impl Budget {
    /// A burst of `capacity` for each peer, and `per_second` after that.
    pub(super) fn new(capacity: u32, per_second: u32) -> Self {
        Self {
            capacity,
            per_second,
            buckets: Arc::default(),
        }
    }

    /// Counts what a peer has sent, and waits until it may go on.
    pub(super) async fn spend(&self, peer: PeerId, count: f64) {
        sleep(self.take(peer, count, Instant::now())).await;
    }

    fn take(&self, peer: PeerId, count: f64, now: Instant) -> Duration {
        // Each change is complete before the lock is released.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(&peer) {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let new = || Bucket::new(self.capacity, self.per_second, now);
        let bucket = buckets.entry(peer).or_insert_with(new);
        bucket.take(count, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_one_bucket_and_a_full_one_is_forgotten() {
        let start = Instant::now();
        let budget = Budget::new(10, 2);
        let (one, two) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
        assert_eq!(budget.take(one, 10.0, start), Duration::ZERO);
        // Another stream of the same peer, and one of another peer.
        let stream = budget.clone();
        assert_eq!(stream.take(one, 4.0, start), Duration::from_secs(2));
        assert_eq!(stream.take(two, 10.0, start), Duration::ZERO);
        let later = start + Duration::from_secs(6);
        assert_eq!(budget.take(two, 1.0, later), Duration::ZERO);
        assert_eq!(budget.buckets.lock().unwrap().len(), 2);
        let later = later + Duration::from_secs(60);
        let three = PeerId::from_bytes([3; 32]);
        assert_eq!(budget.take(three, 1.0, later), Duration::ZERO);
        assert_eq!(budget.buckets.lock().unwrap().len(), 1);
    }

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
