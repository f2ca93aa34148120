//! Models on burn behind the trait [`Trainer`](murmurate_strategies::Trainer), with data, shards
//! and devices. This is the only crate of Murmurate that names burn. It has no network, peer or
//! async code.
//!
//! [`build`] makes a boxed trainer from a [`TaskConfig`].
//!
//! # A custom task
//!
//! A task is a burn model, its batches and its loss. Implement [`Task`] and pass it to
//! [`BurnTrainer::new`]. burn is re-exported, so that both use the same version.
//!
//! ```
//! use murmurate_strategies::Trainer;
//! use murmurate_strategies::inner::InnerKind;
//! use murmurate_tasks::burn::module::{Initializer, Module};
//! use murmurate_tasks::burn::nn::{Linear, LinearConfig};
//! use murmurate_tasks::burn::tensor::{Device, Tensor, TensorData};
//! use murmurate_tasks::{BurnTrainer, DeviceChoice, Score, Segments, Task, TaskError};
//!
//! #[derive(Module, Debug)]
//! struct Line {
//!     line: Linear,
//! }
//!
//! /// Fits y = 2 x + 1.
//! struct Fit;
//!
//! impl Task for Fit {
//!     type Model = Line;
//!     type Batch = (Tensor<2>, Tensor<2>);
//!
//!     fn model(&self, device: &Device) -> Line {
//!         let line = LinearConfig::new(1, 1).with_initializer(Initializer::Zeros);
//!         Line { line: line.init(device) }
//!     }
//!
//!     fn samples(&self) -> u64 {
//!         4
//!     }
//!
//!     fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
//!         let x: Vec<f32> = (0..4).map(|i| ((number + i) % 7) as f32 / 7.0).collect();
//!         let y = x.iter().map(|x| 2.0 * x + 1.0).collect();
//! let column = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [4, 1]), device);
//!         Ok((column(x), column(y)))
//!     }
//!
//!     fn loss(&self, model: &Line, (x, y): Self::Batch, _: &mut Segments) -> Tensor<1> {
//!         (model.line.forward(x) - y).square().mean()
//!     }
//!
//!     fn held_batches(&self) -> usize {
//!         1
//!     }
//!
//!     fn score(&mut self, model: &Line, _: usize, device: &Device) -> Result<Score, TaskError> {
//!         let (x, y) = self.batch(3, device)?;
//!         let loss = self.loss(model, (x, y), &mut Segments::whole()).into_scalar::<f32>();
//!         Ok(Score { loss_sum: 4.0 * f64::from(loss), samples: 4, ..Score::default() })
//!     }
//! }
//!
//! let mut trainer = BurnTrainer::new(Fit, &InnerKind::sgd(0.5), &DeviceChoice::Flex, 7)?;
//! assert_eq!(trainer.layout().tensors()[0].name, "line.weight");
//! let before = trainer.evaluate()?.loss;
//! murmurate_tasks::take_steps(&mut trainer, 300)?;
//! assert!(trainer.evaluate()?.loss < before / 100.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use burn;

pub mod config;
pub mod data;
pub mod loss;
pub mod model;

mod build;
mod choices;
mod device;
mod error;
mod fused;
mod generate;
mod hub;
mod rng;
mod segments;
mod task;
mod trainer;
mod weights;

pub use build::{build, build_island, bytes_per_token, context, layout};
pub use choices::{ChoiceScore, Question, read_questions};
pub use config::TaskConfig;
pub use device::{DeviceChoice, compute_here, keep_pages_for};
pub use error::TaskError;
pub use generate::{Ended, Generated, Generator, Sampling, Turn};
pub use hub::write_folder;
pub use rng::fan_in;
pub use segments::Segments;
pub use task::{CausalTask, ImageTask, LanguageTask, Score, TabularTask, Task, Wanted, Windows};
pub use trainer::{BurnTrainer, parameters, take_steps};
pub use weights::{
    ExtraTensor, ModelFileError, load_model, load_module, read_model, write_model, write_model_with,
};

#[cfg(test)]
mod tests;
