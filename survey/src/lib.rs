//! A timing model of synchronous GPU clusters, held against published measurements.
//!
//! The quantitative survey (Shi et al. 2021, arXiv 2005.13247) measured seven lossless methods on
//! real clusters. [`run_survey`] predicts their throughput from the architecture of the model, one
//! measurement on a single GPU, and one bandwidth per tier of the network. The bandwidths are
//! calibrated on the rows of BSP-A2A alone; the other six methods are predicted.
//!
//! The crate has no peers and no tensors and uses none of the other crates.
//!
//! - `measured` reads the CSV; `constants` holds what BSP-A2A cannot identify; `tiers` calibrates
//!   the bandwidths.
//! - `model` lists tensors and FLOPs of the real architectures.
//! - `engine` runs tasks on resources; `schedule` expresses the seven methods as graphs of tasks.
//! - `report` prints the predictions and their errors.
//! - `fabric` models networks that no peer of a swarm has: summing switches, rails, jobs that take
//!   turns, RDMA.

mod constants;
mod engine;
mod error;
pub mod fabric;
mod measured;
mod model;
mod report;
mod schedule;
mod tiers;

pub use constants::Constants;
pub use error::SurveyError;
pub use measured::{Measured, Row};
pub use model::{Layer, ModelProfile};
pub use report::{Cell, Summary, SurveyReport};
pub use schedule::Method;
pub use tiers::Tiers;

use std::path::Path;

/// Predicts every cell of a file of measurements.
///
/// # Errors
/// When the file cannot be read, or a cell is outside its range: file, line and column.
pub fn run_survey(measured: &Path, constants: &Constants) -> Result<SurveyReport, SurveyError> {
    let measured = Measured::from_file(measured)?;
    report::predict(&measured, constants)
}
