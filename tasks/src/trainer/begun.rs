//! The forward pass over the next batch, which may begin while its parameters are still exchanged.

use super::next::{Begun, Place};
use super::{BurnTrainer, MODEL, gated};
use crate::data::{DataError, Problem};
use crate::{Segments, Task, TaskError};
use burn::tensor::Tensor;
use murmurate_strategies::{Gate, TrainError};
use std::sync::Arc;

/// Batches in a row of which no record can be read, after which training ends.
const EMPTY_MAX: u32 = 1_000;

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

    /// Gradients can leave one by one, unless they are accumulated or clipped, which needs all of them first.
    pub(super) fn hands_out_in_pieces(&self) -> bool {
        self.task.accumulate() <= 1 && self.task.clip_norm().is_none()
    }

    fn go_back(&mut self, before: &Place) -> Result<(), TaskError> {
        self.batches = before.batches;
        self.task.seek(&before.position)
    }

    fn next_batch(&mut self) -> Result<T::Batch, TaskError> {
        for _ in 0..EMPTY_MAX {
            if let Some(error) = self.met.due() {
                return Err(error);
            }
            let batch = self.task.batch(self.batches, &self.device);
            self.batches += 1;
            match batch {
                Ok(batch) => return Ok(batch),
                Err(TaskError::Data(error)) if matches!(error.problem(), Problem::NoneLeft) => {}
                Err(error) => self.met.keep(error)?,
            }
        }
        Err(DataError::nowhere(Problem::NoneLeft).into())
    }

    /// One forward pass over the next batch.
    pub(super) fn pass(&mut self, segments: &mut Segments) -> Result<(f64, Tensor<1>), TrainError> {
        let batch = self.next_batch()?;
        let model = self.model.as_ref().expect(MODEL);
        let loss = self.task.segmented_loss(model, batch, segments);
        let value = loss.clone().into_scalar::<f32>();
        if value.is_finite() {
            Ok((f64::from(value), loss))
        } else {
            Err(TrainError::NotFinite)
        }
    }
}
