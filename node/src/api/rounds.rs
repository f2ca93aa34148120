//! Cost of the last rounds: time, inner steps and bytes, from counters read at the end of each
//! round.

use murmurate_protocol::Time;
use std::collections::VecDeque;

/// Rounds in the window. A push that is in flight when a round ends counts for the next round, so
/// the means are off by at most one round's bytes divided by this number.
const ROUNDS: usize = 64;

/// The counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    /// The moment.
    pub(super) at: Time,
    /// Seconds spent in inner steps since the start.
    pub(super) train_s: f64,
    /// Inner steps since the start.
    pub(super) inner_steps: u64,
    /// Encoded bytes sent since the start.
    pub(super) sent: u64,
    /// Encoded bytes received since the start.
    pub(super) received: u64,
}

/// Means over the rounds of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundMean {
    pub(super) round_s: f64,
    pub(super) train_s: f64,
    pub(super) inner_steps: f64,
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// The counters at the ends of the last rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundWindow {
    marks: VecDeque<Mark>,
}

impl RoundWindow {
    /// Adds the counters at the start of the first round or at the end of a round.
    pub(super) fn push(&mut self, mark: Mark) {
        self.marks.push_back(mark);
        if self.marks.len() > ROUNDS + 1 {
            self.marks.pop_front();
        }
    }

    /// Means over the window; `None` before the first round has ended.
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
        // Only the first round was slow.
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
