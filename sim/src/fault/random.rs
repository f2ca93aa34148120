//! Random crashes: a Poisson process over the whole swarm.

use crate::due::Due;
use crate::error::SimError;
use crate::random::{Purpose, Random};
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::Time;

/// One process of random crashes.
#[derive(Debug)]
pub(crate) struct RandomCrashes {
    mean: Duration,
    restart_after: Option<Duration>,
    until: Time,
    down_max: usize,
    random: Random,
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

    fn next(&mut self, now: Time) -> Option<Time> {
        let gap = self.random.exponential(self.mean.as_secs_f64());
        let at = now + Duration::from_secs_f64(gap);
        (at < self.until).then_some(at)
    }
}

impl Swarm<'_> {
    /// Schedules the next crash of a process.
    pub(crate) fn schedule_random_crash(&mut self, process: usize) {
        if let Some(at) = self.random_crashes[process].next(self.now) {
            self.queue.push(
                at,
                Due::RandomCrash {
                    process: process as u32,
                },
            );
        }
    }

    /// Crashes a random live machine, unless `down_max` machines are down.
    pub(crate) fn random_crash(&mut self, process: usize) -> Result<(), SimError> {
        let crashes = &mut self.random_crashes[process];
        let (index, after) = (
            crashes.random.below(self.slots.len()),
            crashes.restart_after,
        );
        if self.scenario.peers - self.live < crashes.down_max {
            self.crash(index, after)?;
        }
        self.schedule_random_crash(process);
        Ok(())
    }
}
