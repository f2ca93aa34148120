//! Random crashes: a Poisson process over the whole swarm.

use crate::random::{Purpose, Random};
use core::time::Duration;
use murmurate_protocol::Time;

/// One process of random crashes.
#[derive(Debug)]
pub(crate) struct RandomCrashes {
    mean: Duration,
    pub(super) restart_after: Option<Duration>,
    until: Time,
    pub(super) down_max: usize,
    pub(super) random: Random,
}

impl RandomCrashes {
    /// From a scenario's fault. `number` gives each process a separate random stream.
    pub(crate) fn new(
        seed: u64,
        number: usize,
        (mean, restart_after): (Duration, Option<Duration>),
        (until, down_max): (Time, usize),
    ) -> Self {
        let random = Random::new(seed.wrapping_add(number as u64), Purpose::Faults);
        Self {
            mean,
            restart_after,
            until,
            down_max,
            random,
        }
    }

    pub(super) fn next(&mut self, now: Time) -> Option<Time> {
        let gap = self.random.exponential(self.mean.as_secs_f64());
        let at = now + Duration::from_secs_f64(gap);
        (at < self.until).then_some(at)
    }
}
