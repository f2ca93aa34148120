//! One control for the stretches of training that several ranks take at the same time.

use crate::inner::StepRule;
use crate::trainer::{Proceed, StepControl};
use murmurate_protocol::InnerStep;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The control of an island's stretch. An inner step of the island is one of each rank.
pub(super) struct Shared<'a> {
    inner: Mutex<Counted<'a>>,
    corrects: bool,
}

struct Counted<'a> {
    control: &'a mut dyn StepControl,
    /// Inner steps of the island that the control was told of.
    steps: u64,
    /// Samples that it was not told of yet.
    samples: u64,
}

impl<'a> Shared<'a> {
    /// `samples` were seen before and not told.
    pub(super) fn new(control: &'a mut dyn StepControl, samples: u64) -> Self {
        Self {
            corrects: control.corrects(),
            inner: Mutex::new(Counted {
                control,
                steps: 0,
                samples,
            }),
        }
    }

    /// The samples that the control was not told of.
    pub(super) fn untold(self) -> u64 {
        let inner = self.inner.into_inner();
        inner.unwrap_or_else(PoisonError::into_inner).samples
    }

    fn lock(&self) -> MutexGuard<'_, Counted<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same control as one rank sees it.
pub(super) struct OfRank<'a, 'b>(pub(super) &'a Shared<'b>);

impl StepControl for OfRank<'_, '_> {
    fn before(&mut self, step: InnerStep) -> Proceed {
        self.0.lock().control.before(step)
    }

    fn after(&mut self, step: InnerStep, samples: u64) {
        let mut inner = self.0.lock();
        inner.samples += samples;
        if step.0 >= inner.steps {
            inner.steps = step.0 + 1;
            let samples = std::mem::take(&mut inner.samples);
            inner.control.after(step, samples);
        }
    }

    fn corrects(&self) -> bool {
        self.0.corrects
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        if self.0.corrects {
            self.0.lock().control.correct(offset, values, gradient);
        }
    }

    fn rule(&self, step: InnerStep) -> StepRule {
        self.0.lock().control.rule(step)
    }
}
