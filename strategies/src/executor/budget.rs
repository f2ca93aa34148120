//! The control of a stretch of training: ends it by the order's budget, and says each step's rule.

use super::host::Stopwatch;
use super::rules::Rules;
use super::signals::TrainSignals;
use crate::correct::Correction;
use crate::inner::StepRule;
use crate::trainer::{Proceed, StepControl};
use murmurate_protocol::{InnerStep, Round, StepBudget};
use std::sync::atomic::Ordering;

/// Ends a stretch of training by the order's budget.
pub(super) struct Budget<'a> {
    pub(super) budget: StepBudget,
    pub(super) stopwatch: &'a mut dyn Stopwatch,
    pub(super) signals: &'a TrainSignals,
    pub(super) correction: Option<&'a mut (dyn Correction + 'static)>,
    pub(super) rules: &'a Rules,
    /// The round, and its inner steps before this stretch.
    pub(super) from: (Round, u64),
}

impl StepControl for Budget<'_> {
    fn before(&mut self, step: InnerStep) -> Proceed {
        let interrupted = self.signals.is_interrupted();
        let enough = match self.budget {
            StepBudget::Steps(count) => step.0 >= u64::from(count),
            StepBudget::Time(time) => step.0 > 0 && self.stopwatch.elapsed(step.0) >= time,
        };
        if interrupted || enough {
            Proceed::Stop
        } else {
            Proceed::Go
        }
    }

    fn after(&mut self, _step: InnerStep, samples: u64) {
        self.signals.steps.fetch_add(1, Ordering::Relaxed);
        self.signals.samples.fetch_add(samples, Ordering::Relaxed);
    }

    fn corrects(&self) -> bool {
        self.correction.is_some()
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        if let Some(correction) = self.correction.as_deref_mut() {
            correction.correct(offset, values, gradient);
        }
    }

    fn rule(&self, step: InnerStep) -> StepRule {
        let (round, taken) = self.from;
        self.rules.of_step(round, taken + step.0)
    }
}
