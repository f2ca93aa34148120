//! The rules of inner steps by the swarm's clock: what the plan says of an inner step of a round.

use crate::Layout;
use crate::inner::{Rate, StepRule, fits};
use murmurate_protocol::{Pace, Round, StepBudget, TrainingRules};
use std::ops::Range;
use std::sync::Arc;

/// The rules of all inner steps of a run.
#[derive(Clone, Debug)]
pub struct Rules {
    rate: Rate,
    budget: StepBudget,
    pace: Pace,
    no_decay: Vec<String>,
    undecayed: Arc<[Range<usize>]>,
    /// What the owner of the run has changed.
    directed: TrainingRules,
}

impl Rules {
    /// The rules of rounds that begin with this budget and change it at this pace. Tensors whose names
    /// fit a pattern of `no_decay` have no weight decay; the layout says which they are.
    pub fn new(rate: Rate, budget: StepBudget, pace: Pace, no_decay: Vec<String>) -> Self {
        Self {
            rate,
            budget,
            pace,
            no_decay,
            undecayed: StepRule::default().undecayed,
            directed: TrainingRules::default(),
        }
    }

    /// The same rules for the tensors of a layout.
    #[must_use]
    pub(super) fn of_layout(mut self, layout: &Layout) -> Self {
        let fits_any = |name: &str| self.no_decay.iter().any(|pattern| fits(pattern, name));
        let tensors = layout.tensors().iter();
        let undecayed = tensors.filter(|tensor| fits_any(&tensor.name));
        self.undecayed = undecayed.map(|tensor| tensor.range()).collect();
        self
    }

    /// What the owner of the run has changed, from now on.
    pub(super) fn direct(&mut self, directed: TrainingRules) {
        self.directed = directed;
    }

    fn budget(&self, round: Round) -> StepBudget {
        let directed = self.directed.inner_steps.map(StepBudget::Steps);
        directed.unwrap_or_else(|| self.pace.budget(self.budget, round))
    }

    /// The rule of the inner step after `taken` ones of a round: the rate in the middle of that step.
    /// Where a round is a time, or machines take different numbers, its steps are not known beforehand,
    /// and all of them have the rule of the round.
    pub(super) fn of_step(&self, round: Round, taken: u64) -> StepRule {
        match self.budget(round) {
            StepBudget::Steps(steps) if self.pace != Pace::Balanced => {
                // A round without a group trains on: its further steps have the rate of its end.
                let part = (taken as f64 + 0.5) / f64::from(steps.max(1));
                self.at(round.0 as f64 + part.min(1.0))
            }
            StepBudget::Steps(_) | StepBudget::Time(_) => self.of_round(round),
        }
    }

    /// Inner steps of a round before its last ones, of which there are `left`.
    pub(super) fn steps_before(&self, round: Round, left: StepBudget) -> u64 {
        match (self.budget(round), left) {
            (StepBudget::Steps(all), StepBudget::Steps(left)) if self.pace != Pace::Balanced => {
                u64::from(all.saturating_sub(left))
            }
            _ => 0,
        }
    }

    /// The rule of a whole round, whose mean gradient is one step: the rate in its middle.
    pub(super) fn of_round(&self, round: Round) -> StepRule {
        self.at(round.0 as f64 + 0.5)
    }

    fn at(&self, time: f64) -> StepRule {
        StepRule {
            rate: self.rate.at(time) * self.directed.rate.get(),
            undecayed: Arc::clone(&self.undecayed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inner::{RateSchedule, RateShape};
    use core::time::Duration;
    use murmurate_protocol::RateFactor;

    fn rules(budget: StepBudget, pace: Pace) -> Rules {
        let schedule = RateSchedule {
            shape: RateShape::Linear { final_rate: 0.0 },
            warmup_rounds: 2,
            rounds: 10,
        };
        let rate = schedule.of_run(0).unwrap();
        Rules::new(rate, budget, pace, vec!["*.bias".to_owned()])
    }

    #[test]
    fn the_rate_follows_the_round_and_the_place_in_it() {
        let rules = rules(StepBudget::Steps(4), Pace::Steady);
        let rate = |round, taken| rules.of_step(Round(round), taken).rate;
        assert_eq!(rate(0, 0), 0.0625);
        assert_eq!(rate(0, 3), 0.4375);
        assert_eq!(rate(1, 3), 0.9375);
        assert_eq!(rate(6, 0), 1.0 - 4.125 / 8.0);
        // Beyond the budget the round does not go on into the next one.
        assert_eq!(rate(0, 9), 0.5);
        assert_eq!(rate(90, 0), 0.0);
        assert_eq!(rules.of_round(Round(0)).rate, 0.25);
    }

    #[test]
    fn a_round_of_time_has_one_rate() {
        let rules = rules(StepBudget::Time(Duration::from_secs(1)), Pace::Steady);
        for taken in [0, 5, 500] {
            assert_eq!(rules.of_step(Round(3), taken).rate, 1.0 - 1.5 / 8.0);
        }
    }

    #[test]
    fn a_balanced_round_has_one_rate_whatever_its_steps() {
        let rules = rules(StepBudget::Steps(8), Pace::Balanced);
        for taken in [0, 2, 8] {
            assert_eq!(rules.of_step(Round(3), taken).rate, 1.0 - 1.5 / 8.0);
        }
        assert_eq!(rules.steps_before(Round(3), StepBudget::Steps(2)), 0);
    }

    #[test]
    fn the_owner_changes_the_rate_and_the_steps_but_not_the_schedule() {
        let mut rules = rules(StepBudget::Steps(4), Pace::Steady);
        rules.direct(TrainingRules {
            inner_steps: Some(2),
            rate: RateFactor::new(0.5).unwrap(),
            ..TrainingRules::default()
        });
        let rate = |round, taken| rules.of_step(Round(round), taken).rate;
        // The middle of the first of two steps, and half of what the schedule says.
        assert_eq!((rate(0, 0), rate(0, 1)), (0.125 / 2.0, 0.375 / 2.0));
        assert_eq!(rules.of_round(Round(0)).rate, 0.125);
        assert_eq!(rules.steps_before(Round(0), StepBudget::Steps(1)), 1);
        rules.direct(TrainingRules::default());
        assert_eq!(rules.of_round(Round(0)).rate, 0.25);
    }

    #[test]
    fn tensors_without_decay_are_found_by_name() {
        let layout = Layout::new([
            ("a.weight", vec![2, 2]),
            ("a.bias", vec![3]),
            ("b", vec![1]),
        ]);
        let rules = rules(StepBudget::Steps(1), Pace::Steady).of_layout(&layout);
        let undecayed = rules.of_round(Round(0)).undecayed;
        assert_eq!((undecayed.len(), undecayed.first()), (1, Some(&(4..7))));
    }
}
