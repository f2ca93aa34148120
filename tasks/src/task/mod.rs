//! The trait of a task: a model, its batches and its loss. The trainer does the rest.

mod causal;
mod image;
mod language;
mod tabular;

pub use causal::CausalTask;
pub(crate) use causal::{CausalPlan, reading, tokens};
pub use image::ImageTask;
pub(crate) use image::{ImagePlan, find_images};
pub use language::LanguageTask;
pub(crate) use language::shape;
pub use tabular::{TabularTask, Wanted};

use crate::data::Dataset;
use crate::rng;
use crate::{Segments, TaskError};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use murmurate_protocol::{Blocks, Digest, Participants, Pool};
use murmurate_strategies::{DataReport, TensorSpec};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// The score of a model on one batch of held-out data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Sum of the losses of its samples, in nats.
    pub loss_sum: f64,
    /// Correctly classified samples; `None` if the task has no classes.
    pub right: Option<u64>,
    /// Samples whose class is among the five most likely; `None` with fewer than ten classes.
    pub right_5: Option<u64>,
    /// Number of terms in the mean loss, usually the samples of the batch.
    pub samples: u64,
}

/// A task. Implement it for a custom model and pass it to
/// [`BurnTrainer::new`](crate::BurnTrainer::new).
///
/// All methods must depend only on their arguments and on the values the task was built with, or
/// runs cannot be resumed or repeated. They must not use global randomness or a clock.
pub trait Task: Send {
    /// The burn model. All its float parameters that are not frozen are trained, in the order in
    /// which burn visits them, which is the order of the fields.
    type Model: Module;
    /// The input of the loss.
    type Batch;

    /// Builds the model. [`Task::initial`] sets its values afterwards.
    fn model(&self, device: &Device) -> Self::Model;

    /// Hash of what the model's inputs and outputs stand for. Peers of which one takes for a cat what another one
    /// takes for a dog train another model. `None` where only their number counts.
    fn meaning(&self) -> Option<Digest> {
        None
    }

    /// Writes the initial values of one tensor. The default has the standard deviation `1 /
    /// sqrt(fan_in)` for tensors of two and more dimensions, ones for names that end with `gamma`,
    /// zeros for the rest.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        match tensor.shape.len() {
            2.. => rng::fan_in(tensor, 1.0, values, rng),
            _ if tensor.name.ends_with("gamma") => rng::ones(values),
            _ => rng::zeros(values),
        }
    }

    /// Replaces initial values by values that are read, for example those of a trained model, and
    /// reads the tensors that are frozen (`Param::set_require_grad(false)`). The default changes
    /// nothing.
    ///
    /// # Errors
    /// If reading fails.
    fn start(&self, model: Self::Model) -> Result<Self::Model, TaskError> {
        Ok(model)
    }

    /// What the peers divide of this task's data, and where this peer is in it. What follows about
    /// participants, blocks and positions is answered by it. The default is for data that is this peer's own
    /// and whose batches follow from their numbers.
    fn dataset(&self) -> Option<&dyn Dataset> {
        None
    }

    /// The same, to change.
    fn dataset_mut(&mut self) -> Option<&mut dyn Dataset> {
        None
    }

    /// Says who trains beside this peer. A task whose data is divided among the peers makes its
    /// batches of its own part from now on.
    fn deal(&mut self, participants: &Participants) {
        if let Some(data) = self.dataset_mut() {
            data.deal(participants);
        }
    }

    /// The data set, if the peers can divide it in blocks.
    fn pool(&self) -> Option<Pool> {
        self.dataset()?.pool()
    }

    /// Says which blocks of its pool to train from now on, instead of [`Task::deal`]. Batches then follow
    /// from the blocks, and not from their numbers, and the task has a [position](Task::position).
    fn train_blocks(&mut self, blocks: &Blocks) {
        if let Some(data) = self.dataset_mut() {
            data.train_blocks(blocks);
        }
    }

    /// How many of these blocks are finished.
    fn finished_blocks(&self) -> u64 {
        self.dataset().map_or(0, Dataset::finished_blocks)
    }

    /// Number of samples in each batch.
    fn samples(&self) -> u64;

    /// Batches of one inner step, whose gradients are averaged. At least one.
    fn accumulate(&self) -> u32 {
        1
    }

    /// Largest norm of the gradient of one inner step, over all trained tensors together; a larger
    /// gradient is scaled down to it. `None` leaves gradients as they are.
    ///
    /// **Source:** Pascanu et al., On the difficulty of training recurrent neural networks, 2013,
    /// algorithm 1.
    fn clip_norm(&self) -> Option<f64> {
        None
    }

    /// The batch with this number. Must return the same batch for the same number and the same
    /// participants. Numbers grow by one; a task with a [position](Task::position) may rely on it.
    ///
    /// # Errors
    /// If reading the data fails.
    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError>;

    /// Where the next batch is, for tasks that cannot find it by its number alone. Checkpoints keep it.
    /// The default is for tasks that can unless they were told blocks.
    fn position(&self) -> Vec<u8> {
        self.dataset().map_or(Vec::new(), Dataset::position)
    }

    /// Goes to a position that [`Task::position`] gave, perhaps in an earlier process. An empty one is the
    /// beginning. The next batch is the same one that followed it then.
    ///
    /// # Errors
    /// If it is not a position in this task's data.
    fn seek(&mut self, position: &[u8]) -> Result<(), TaskError> {
        let fits = match self.dataset_mut() {
            Some(data) => data.seek(position),
            None => position.is_empty(),
        };
        fits.then_some(()).ok_or(TaskError::Position)
    }

    /// The mean loss over a batch, in nats if it has a unit. One value.
    fn loss(&self, model: &Self::Model, batch: Self::Batch) -> Tensor<1>;

    /// As [`Task::loss`], with a [boundary](Segments::boundary) wherever the backward pass may
    /// pause. Gradients behind a boundary leave while those before it are computed. The default has
    /// no boundary.
    fn segmented_loss(
        &self,
        model: &Self::Model,
        batch: Self::Batch,
        segments: &mut Segments,
    ) -> Tensor<1> {
        let _ = segments;
        self.loss(model, batch)
    }

    /// Findings in its data.
    fn data_report(&self) -> Option<Arc<DataReport>> {
        None
    }

    /// Number of batches of held-out data.
    fn held_batches(&self) -> usize;

    /// Scores one batch of held-out data. The model is on `device` and does not record gradients.
    ///
    /// # Errors
    /// If reading the data fails.
    fn score(
        &mut self,
        model: &Self::Model,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError>;
}

#[cfg(test)]
mod tests;
