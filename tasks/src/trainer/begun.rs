//! A forward pass that begins while its parameters are still exchanged.

use super::gated::{Begun, Place};
use super::{BurnTrainer, MODEL, gated};
use crate::{Segments, Task, TaskError};
use murmurate_strategies::{Gate, TrainError};
use std::sync::Arc;

impl<T: Task> BurnTrainer<T> {
    /// Where the next batch is; that of a forward pass that has begun counts as the next one.
    pub(super) fn place(&self) -> Place {
        match &self.begun {
            Some(begun) => begun.before.clone(),
            None => Place {
                batches: self.batches,
                position: self.task.position(),
            },
        }
    }

    /// The forward pass of the next batch. False where the gradient needs several batches or its norm,
    /// or a gate did not open.
    pub(super) fn begin(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        self.give_up()?;
        if !self.hands_out_in_pieces() {
            return Ok(false);
        }
        let before = self.place();
        let model = self.model.take().expect(MODEL);
        let (model, mut closed) = gated::close(model, &self.layout, gate);
        self.model = Some(model);
        let mut segments = Segments::cut();
        let passed = self.pass(&mut segments);
        let model = self.model.take().expect(MODEL);
        self.model = Some(gated::open(model, &mut closed));
        match passed {
            Ok((value, loss)) if !closed.is_given_up() => {
                self.begun = Some(Begun {
                    value,
                    loss,
                    segments,
                    before,
                });
                Ok(true)
            }
            passed => {
                self.go_back(&before)?;
                // The loss of a pass that was given up says nothing.
                if closed.is_given_up() {
                    return Ok(false);
                }
                passed.map(|_| false)
            }
        }
    }

    /// Drops a forward pass that has begun: its batch is the next one again.
    pub(super) fn give_up(&mut self) -> Result<(), TaskError> {
        match self.begun.take() {
            Some(begun) => self.go_back(&begun.before),
            None => Ok(()),
        }
    }

    /// Whether gradients can leave one by one. An accumulated or clipped one needs all of them first.
    pub(super) fn hands_out_in_pieces(&self) -> bool {
        self.task.accumulate() <= 1 && self.task.clip_norm().is_none()
    }

    fn go_back(&mut self, before: &Place) -> Result<(), TaskError> {
        self.batches = before.batches;
        self.task.seek(&before.position)
    }
}
