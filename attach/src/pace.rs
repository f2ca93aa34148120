//! How long inner steps take, and when a trainer counts as hung.

use std::collections::VecDeque;
use std::time::Duration;

/// Inner steps that the median is taken over.
const STEPS_KEPT: usize = 65;

/// A trainer is hung after this many times the median.
const MEDIANS: u32 = 20;

/// Times of the last inner steps of one trainer.
#[derive(Debug)]
pub(crate) struct Pace {
    least: Duration,
    times: VecDeque<Duration>,
}

impl Pace {
    /// A trainer that has taken no step. It is never hung before `least`.
    pub(crate) const fn new(least: Duration) -> Self {
        Self {
            least,
            times: VecDeque::new(),
        }
    }

    /// A step took this long.
    pub(crate) fn took(&mut self, time: Duration) {
        if self.times.len() == STEPS_KEPT {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    /// When the next step counts as hung. The first step may compile for any time.
    pub(crate) fn hung_after(&self) -> Option<Duration> {
        if self.times.is_empty() {
            return None;
        }
        let mut sorted: Vec<Duration> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        Some(self.least.max(sorted[sorted.len() / 2] * MEDIANS))
    }

    /// How long after that a supervised trainer is killed: time to print its stacks.
    pub(crate) fn grace(&self) -> Duration {
        (self.least / 4).max(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_no_limit_and_the_others_that_of_the_median() {
        let mut pace = Pace::new(Duration::from_secs(120));
        assert_eq!(pace.hung_after(), None);
        pace.took(Duration::from_secs(500));
        pace.took(Duration::from_secs(1));
        pace.took(Duration::from_secs(1));
        assert_eq!(pace.hung_after(), Some(Duration::from_secs(120)));
        for _ in 0..100 {
            pace.took(Duration::from_secs(30));
        }
        assert_eq!(pace.hung_after(), Some(Duration::from_secs(600)));
    }
}
