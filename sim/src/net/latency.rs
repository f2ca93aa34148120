//! The latency of a message: a fixed part and uniform jitter.

use crate::random::Random;
use core::time::Duration;

/// Latency of a link, one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// The fixed part.
    pub(crate) fixed: Duration,
    /// Upper bound of the jitter, which is uniformly distributed.
    pub(crate) jitter: Duration,
}

impl Latency {
    /// Draws a latency. Without jitter this uses no randomness.
    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        if self.jitter.is_zero() {
            return self.fixed;
        }
        self.fixed + self.jitter.mul_f64(random.unit())
    }
}
