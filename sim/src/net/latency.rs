//! How long a message is under way: a fixed part and uniform jitter.

use crate::random::Random;
use core::time::Duration;

/// Latency of a link, one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// Always.
    pub(crate) fixed: Duration,
    /// At most so much more, uniformly.
    pub(crate) jitter: Duration,
}

impl Latency {
    /// One draw. No draw is made when there is no jitter.
    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        if self.jitter.is_zero() {
            return self.fixed;
        }
        self.fixed + self.jitter.mul_f64(random.unit())
    }
}
