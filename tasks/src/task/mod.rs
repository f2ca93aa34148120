//! What a task is: a model, its batches, its loss. The trainer does the rest.

mod image;
mod language;

pub use image::ImageTask;
pub use language::LanguageTask;
pub(crate) use language::shape;

use crate::init;
use crate::{Segments, TaskError};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use murmurate_strategies::TensorSpec;
use rand_chacha::ChaCha8Rng;

/// What one batch of held data says of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Sum of the losses of its samples, in nats.
    pub loss_sum: f64,
    /// Samples that are right; `None` where the task has no such thing.
    pub right: Option<u64>,
    /// Samples of the batch, or whatever else the loss is a mean of.
    pub samples: u64,
}

/// A task: implement it for a model of one's own and give it to
/// [`BurnTrainer::new`](crate::BurnTrainer::new).
///
/// Everything must be a function of its arguments and of what the task was made with, or runs
/// cannot be resumed or repeated: no global randomness, no clock.
pub trait Task: Send {
    /// The burn model. All its float parameters are trained, in the order in which burn visits
    /// them, which is the order of the fields.
    type Model: Module;
    /// What the loss is taken of.
    type Batch;

    /// Makes the model; its values do not matter, [`Task::initial`] writes them.
    fn model(&self, device: &Device) -> Self::Model;

    /// Writes the initial values of one tensor. As given: standard deviation `1 / sqrt(fan_in)`
    /// for tensors of two and more dimensions, one for names that end with `gamma`, zero for the
    /// rest.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        match tensor.shape.len() {
            2.. => init::fan_in(tensor, 1.0, values, rng),
            _ if tensor.name.ends_with("gamma") => init::ones(values),
            _ => init::zeros(values),
        }
    }

    /// Samples of each batch.
    fn samples(&self) -> u64;

    /// The batch of this number; the same whenever it is asked for.
    ///
    /// # Errors
    /// When data fail.
    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError>;

    /// The mean loss over a batch, in nats where it has a unit; one value.
    fn loss(&self, model: &Self::Model, batch: Self::Batch) -> Tensor<1>;

    /// As [`Task::loss`], with a [boundary](Segments::boundary) wherever the backward pass may pause: the
    /// gradients behind it then leave while those before it are computed. As given there is none.
    fn segmented_loss(
        &self,
        model: &Self::Model,
        batch: Self::Batch,
        segments: &mut Segments,
    ) -> Tensor<1> {
        let _ = segments;
        self.loss(model, batch)
    }

    /// Batches of held data.
    fn held_batches(&self) -> usize;

    /// What one batch of held data says. The model is one without tape, on `device`.
    ///
    /// # Errors
    /// When data fail.
    fn score(
        &mut self,
        model: &Self::Model,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError>;
}
