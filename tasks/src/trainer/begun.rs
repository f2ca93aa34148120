//! The place of the next batch, the results of a forward pass over it, and a record that could not be read.

use crate::{Segments, TaskError};
use burn::tensor::Tensor;

/// Batches in a row of which no record can be read, after which training ends.
pub(super) const EMPTY_MAX: u32 = 1_000;

/// The results of a forward pass, and the place in the data before it.
pub(super) struct Begun {
    pub(super) value: f64,
    pub(super) loss: Tensor<1>,
    pub(super) segments: Segments,
    pub(super) before: Place,
}

/// Where the next batch is.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) batches: u64,
    pub(super) position: Vec<u8>,
}

/// A record that cannot be read ends the training of the peer that meets it. Where peers are told blocks, it
/// ends one round later: the block then counts as done. Otherwise it would be dealt to the next peer, which
/// would end too, and so on.
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

    /// The error that ends the training now, if there is one.
    pub(super) fn due(&mut self) -> Option<TaskError> {
        self.error.take_if(|_| self.is_due)
    }

    /// Keeps the error of a record for the next stretch of training.
    ///
    /// # Errors
    /// Gives it back if it cannot wait.
    pub(super) fn keep(&mut self, error: TaskError) -> Result<(), TaskError> {
        if !self.told || self.error.is_some() || !error.is_of_a_record() {
            return Err(error);
        }
        self.error = Some(error);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Problem, at};

    fn bad(row: u64) -> TaskError {
        let column = "text".to_owned();
        at("a.parquet".as_ref())(Problem::NotTextRow { column, row }).into()
    }

    #[test]
    fn only_the_first_record_of_a_round_in_blocks_can_wait() {
        let mut met = Met::default();
        assert!(met.keep(bad(1)).is_err(), "no blocks were told");
        met.begin(true);
        assert!(met.keep(TaskError::Position).is_err(), "no record");
        assert!(met.keep(bad(2)).is_ok());
        assert!(met.due().is_none(), "the round goes on");
        assert!(met.keep(bad(3)).is_err());
        met.begin(true);
        assert!(met.due().unwrap().to_string().contains("row 2"));
        assert!(met.due().is_none());
    }
}
