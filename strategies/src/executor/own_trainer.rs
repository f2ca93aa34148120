//! The trainer in the train lane: always there, or there from an order to its cut.

use super::frame::Lent;
use crate::trainer::{TrainError, Trainer};

/// The trainer, which travels to the mix lane and back where it is at hand.
pub(super) struct OwnTrainer {
    /// `None` while the mix lane has it.
    trainer: Option<Box<dyn Trainer>>,
    /// Whether it goes to the mix lane with each cut.
    travels: bool,
    /// Whether the mix lane wants it back after the order.
    borrowed: bool,
    parameters: usize,
}

impl OwnTrainer {
    pub(super) fn new(trainer: Box<dyn Trainer>) -> Self {
        Self {
            parameters: trainer.layout().len(),
            trainer: Some(trainer),
            travels: false,
            borrowed: false,
        }
    }

    /// Sets whether it goes to the mix lane with each cut.
    pub(super) const fn set_travels(&mut self, travels: bool) {
        self.travels = travels;
    }

    /// Whether it goes to the mix lane with each cut.
    pub(super) const fn travels(&self) -> bool {
        self.travels
    }

    /// Number of parameters.
    pub(super) const fn parameters(&self) -> usize {
        self.parameters
    }

    /// The trainer.
    ///
    /// # Errors
    /// Only while the daemon ends: the mix lane has ended with it.
    pub(super) fn here(&mut self) -> Result<&mut dyn Trainer, TrainError> {
        let ended = || TrainError::Backend("the mix lane has ended".to_owned());
        Ok(&mut **self.trainer.as_mut().ok_or_else(ended)?)
    }

    /// Blocks that it has finished.
    pub(super) fn finished_blocks(&self) -> u64 {
        self.trainer.as_ref().map_or(0, |t| t.finished_blocks())
    }

    /// Takes in what the mix lane has sent, if that is the trainer; else gives it back.
    pub(super) fn receive(&mut self, lent: Lent) -> Option<Lent> {
        match lent {
            Lent::Trainer(trainer) => self.trainer = Some(trainer),
            Lent::Borrowed(trainer) => (self.trainer, self.borrowed) = (Some(trainer), true),
            values @ Lent::Values(_) => return Some(values),
        }
        None
    }

    /// Puts the trainer in.
    pub(super) fn put(&mut self, trainer: Box<dyn Trainer>) {
        self.trainer = Some(trainer);
    }

    /// Takes the trainer out.
    pub(super) const fn take(&mut self) -> Option<Box<dyn Trainer>> {
        self.trainer.take()
    }

    /// Takes the trainer out if it was borrowed.
    pub(super) const fn take_borrowed(&mut self) -> Option<Box<dyn Trainer>> {
        match std::mem::replace(&mut self.borrowed, false) {
            true => self.trainer.take(),
            false => None,
        }
    }
}
