//! What the last rounds took: time, inner steps and bytes, as they were when each round ended. It counts nothing
//! itself.

use murmurate_protocol::Time;
use std::collections::VecDeque;

/// Rounds that are looked back on. A push that is under way when a round ends counts with the next one, so that
/// what is shown is off by one round's bytes in this many.
const ROUNDS: usize = 64;

/// The counts at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    /// When.
    pub(super) at: Time,
    /// Seconds in inner steps so far.
    pub(super) train_s: f64,
    /// Inner steps so far.
    pub(super) inner_steps: u64,
    /// Encoded bytes sent so far.
    pub(super) sent: u64,
    /// Encoded bytes received so far.
    pub(super) received: u64,
}

/// What a round of the last ones took on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundMean {
    pub(super) round_s: f64,
    pub(super) train_s: f64,
    pub(super) inner_steps: f64,
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// The ends of the last rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundWindow {
    marks: VecDeque<Mark>,
}

impl RoundWindow {
    /// The first round begins, or another one has ended.
    pub(super) fn push(&mut self, mark: Mark) {
        self.marks.push_back(mark);
        if self.marks.len() > ROUNDS + 1 {
            self.marks.pop_front();
        }
    }

    /// The mean of the last rounds; none before the first has ended.
    pub(super) fn mean(&self) -> Option<RoundMean> {
        let (first, last) = (self.marks.front()?, self.marks.back()?);
        let rounds = self.marks.len() - 1;
        if rounds == 0 {
            return None;
        }
        let each = |whole: f64| whole / rounds as f64;
        let between = |of: fn(&Mark) -> u64| each(of(last).saturating_sub(of(first)) as f64);
        Some(RoundMean {
            round_s: each(last.at.since(first.at).as_secs_f64()),
            train_s: each(last.train_s - first.train_s),
            inner_steps: between(|mark| mark.inner_steps),
            sent: between(|mark| mark.sent),
            received: between(|mark| mark.received),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(second: u64) -> Mark {
        Mark {
            at: Time::from_nanos(second * 1_000_000_000),
            train_s: 0.25 * second as f64,
            inner_steps: 10 * second,
            sent: 100 * second,
            received: 50 * second,
        }
    }

    #[test]
    fn a_mean_needs_a_round_and_forgets_old_ones() {
        let mut window = RoundWindow::default();
        assert_eq!(window.mean(), None);
        window.push(mark(0));
        assert_eq!(window.mean(), None);
        // The first round alone was slow.
        (100..300).for_each(|second| window.push(mark(second)));
        let expected = RoundMean {
            round_s: 1.0,
            train_s: 0.25,
            inner_steps: 10.0,
            sent: 100.0,
            received: 50.0,
        };
        assert_eq!(window.mean(), Some(expected));
    }
}
