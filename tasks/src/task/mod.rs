//! The trait of a task: a model, its batches and its loss. The trainer does the rest.

mod causal;
mod image;
mod language;
mod tabular;
mod windows;

pub use causal::CausalTask;
pub(crate) use causal::{CausalPlan, reading, tokens};
pub(crate) use image::ImagePlan;
pub use image::ImageTask;
pub use language::LanguageTask;
pub(crate) use language::shape;
pub use tabular::{TabularTask, Wanted};
pub use windows::Windows;

use crate::choices::ChoiceScore;
use crate::data::Dataset;
use crate::rng;
use crate::{Segments, TaskError};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use murmurate_protocol::Digest;
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
            _ if tensor.name.ends_with("gamma") => values.fill(1.0),
            _ => values.fill(0.0),
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

    /// What the peers divide of this task's data, and where this peer is in it. The default is for data that
    /// is this peer's own and whose batches follow from their numbers.
    fn dataset(&self) -> Option<&dyn Dataset> {
        None
    }

    /// The same, to change.
    fn dataset_mut(&mut self) -> Option<&mut dyn Dataset> {
        None
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

    /// Blocks of the model are computed again in the backward pass instead of keeping their activations.
    fn recomputes(&self) -> bool {
        false
    }

    /// The batch with this number. Must return the same batch for the same number and the same
    /// participants. Numbers grow by one; data with a [position](Dataset::position) may rely on it.
    ///
    /// # Errors
    /// If reading the data fails.
    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError>;

    /// The mean loss over a batch, in nats if it has a unit. One value. A task may set a
    /// [boundary](Segments::boundary) wherever the backward pass may pause: gradients behind it leave while
    /// those before it are computed.
    fn loss(&self, model: &Self::Model, batch: Self::Batch, segments: &mut Segments) -> Tensor<1>;

    /// Findings in its data.
    fn data_report(&self) -> Option<Arc<DataReport>> {
        None
    }

    /// Number of batches of held-out data.
    fn held_batches(&self) -> usize;

    /// Asks the model the questions of the task, if it has some. The model is as for [`Task::score`].
    fn ask(&self, model: &Self::Model, device: &Device) -> Option<ChoiceScore> {
        let _ = (model, device);
        None
    }

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
