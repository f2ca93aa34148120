//! Why a task cannot be built or run.

use crate::config::ConfigError;
use crate::data::{DataError, ShardError, TextError};
use crate::device::DeviceError;
use murmurate_strategies::TrainError;

/// Why a task cannot be built or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device is not there.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Images cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Text cannot be used.
    #[error(transparent)]
    Text(#[from] TextError),
    /// There is no such shard.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The model cannot take these images.
    #[error("images of {height} x {width} are too small for model = \"cnn\" (use \"mlp\")")]
    ImageTooSmall {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// A task of one's own failed.
    #[error("{0}")]
    Own(String),
}

impl From<TaskError> for TrainError {
    fn from(error: TaskError) -> Self {
        Self::Backend(error.to_string())
    }
}
