//! Why a task cannot be built or run.

use crate::config::ConfigError;
use crate::data::{DataError, ShardError};
use crate::device::DeviceError;
use crate::model::ModelDirError;
use crate::weights::ModelFileError;
use murmurate_strategies::{IslandError, TrainError};
use std::path::PathBuf;

/// Why a task cannot be built or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device is not available.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There are no data.
    #[error("{}: nothing is there; set `task.data` (--data) to a file or folder", .0.display())]
    NoData(PathBuf),
    /// The data cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The shard does not exist.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The ranks of an island do not fit together.
    #[error(transparent)]
    Island(#[from] IslandError),
    /// Weights cannot be read.
    #[error(transparent)]
    Weights(#[from] ModelFileError),
    /// A model directory cannot be used.
    #[error(transparent)]
    ModelDir(#[from] ModelDirError),
    /// The model does not accept images of this size.
    #[error("images of {height} x {width} are too small for model = \"cnn\" (use \"mlp\")")]
    ImageTooSmall {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// The model is in another process.
    #[error(
        "the model of kind = \"attached\" is in the process that trains it, which must evaluate it too"
    )]
    Attached,
    /// The loss of the model to start from is NaN or infinite.
    #[error("the loss of the model to start from is not finite (check the weights of `--init`)")]
    Start,
    /// The checkpoint has a position in other data.
    #[error("the checkpoint's place in the data cannot be read (delete it to begin afresh)")]
    Position,
    /// A custom task failed.
    #[error("{0}")]
    Own(String),
}

impl TaskError {
    /// Tells a wrong record of the data from a wrong source.
    pub(crate) const fn is_of_a_record(&self) -> bool {
        matches!(self, Self::Data(error) if error.is_of_a_record())
    }
}

impl From<TaskError> for TrainError {
    fn from(error: TaskError) -> Self {
        Self::Backend(error.to_string())
    }
}
