//! Helpers for callers that want all parameters or a number of inner steps.

use murmurate_protocol::InnerStep;
use murmurate_strategies::{Proceed, StepControl, TrainError, TrainReport, Trainer};

/// All parameters of a trainer.
pub fn parameters(trainer: &mut dyn Trainer) -> Vec<f32> {
    let mut parameters = vec![0.0; trainer.layout().len()];
    trainer.read(0, &mut parameters);
    parameters
}

/// Takes a number of inner steps without corrections or interrupts.
///
/// # Errors
/// As [`Trainer::steps`].
pub fn take_steps(trainer: &mut dyn Trainer, steps: u64) -> Result<TrainReport, TrainError> {
    struct Count(u64);
    impl StepControl for Count {
        fn before(&mut self, step: InnerStep) -> Proceed {
            if step.0 < self.0 {
                Proceed::Go
            } else {
                Proceed::Stop
            }
        }

        fn corrects(&self) -> bool {
            false
        }
    }
    trainer.steps(&mut Count(steps))
}

/// A control that never stops and corrects nothing.
pub(super) struct Uncorrected;

impl StepControl for Uncorrected {
    fn before(&mut self, _: InnerStep) -> Proceed {
        Proceed::Go
    }

    fn corrects(&self) -> bool {
        false
    }
}

/// Adds a count that a task may not have.
pub(super) fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}
