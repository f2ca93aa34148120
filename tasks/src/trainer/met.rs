//! The batches of a trainer, some of whose records may not be readable.

use super::{BurnTrainer, MODEL};
use crate::data::{DataError, PictureError};
use crate::{Segments, Task, TaskError};
use burn::tensor::Tensor;
use murmurate_strategies::TrainError;

/// Batches in a row of which no record can be read, after which training ends.
const EMPTY_MAX: u32 = 1_000;

/// A record that cannot be read ends the training of the peer that meets it. Where peers are told blocks it
/// ends one round later: the block then counts as done. Otherwise the block would be
/// dealt to the next peer, which would end too, and so on.
#[derive(Default)]
pub(super) struct Met {
    told: bool,
    error: Option<TaskError>,
    is_due: bool,
}

impl Met {
    /// A stretch of training begins, in blocks or not.
    pub(super) fn begin(&mut self, told: bool) {
        self.told = told;
        self.is_due = self.error.is_some();
    }
}

impl<T: Task> BurnTrainer<T> {
    fn next_batch(&mut self) -> Result<T::Batch, TaskError> {
        for _ in 0..EMPTY_MAX {
            if self.met.is_due
                && let Some(error) = self.met.error.take()
            {
                return Err(error);
            }
            let batch = self.task.batch(self.batches, &self.device);
            self.batches += 1;
            match batch {
                Err(TaskError::Data(DataError::Picture(PictureError::NoneLeft))) => {}
                Err(error)
                    if self.met.told && self.met.error.is_none() && error.is_of_a_record() =>
                {
                    self.met.error = Some(error);
                }
                batch => return batch,
            }
        }
        Err(DataError::Picture(PictureError::NoneLeft).into())
    }

    /// One forward pass over the next batch.
    pub(super) fn pass(&mut self, segments: &mut Segments) -> Result<(f64, Tensor<1>), TrainError> {
        let batch = self.next_batch()?;
        let model = self.model.as_ref().expect(MODEL);
        let loss = self.task.segmented_loss(model, batch, segments);
        let value = loss.clone().into_scalar::<f32>();
        match value.is_finite() {
            true => Ok((f64::from(value), loss)),
            false => Err(TrainError::NotFinite),
        }
    }
}
