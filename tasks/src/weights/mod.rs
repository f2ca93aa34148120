//! Weights in safetensors files: one file, or a Hugging Face directory with one or several.

mod files;
mod load;
mod write;

pub(crate) use files::{ADAPTER, SINGLE, WeightFiles, no_model_in, remove_others};

pub(crate) use load::peft_name;
pub use load::{load_model, load_module, read_model};
pub use write::{ExtraTensor, write_model, write_model_with};

use safetensors::SafeTensorError;
use std::io;
use std::path::{Path, PathBuf};

/// Errors of reading or writing a model file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// The file is missing or unreadable, or the disk is full.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a safetensors file.
    #[error("{}: it is not a safetensors file ({source})", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: SafeTensorError,
    },
    /// The folder has no weights, or its index is wrong.
    #[error("{}: {reason}", file.display())]
    Folder {
        /// The folder or its index.
        file: PathBuf,
        /// The problem, with advice.
        reason: String,
    },
    /// A tensor of the model is not in the file.
    #[error("{}: tensor `{name}` is missing (is it a file of another model?)", file.display())]
    Missing {
        /// The file or folder.
        file: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor of the file is not in the model.
    #[error("{}: tensor `{name}` is not of this model (is it a file of another model?)", file.display())]
    Extra {
        /// The file or folder.
        file: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor has another shape or type.
    #[error(
        "{}: tensor `{name}` is {dtype} {found:?}, this model has F32 {needed:?} (is it a file of \
         another model?)", file.display()
    )]
    Shape {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
        /// Its type in the file.
        dtype: safetensors::Dtype,
        /// Its shape in the file.
        found: Vec<usize>,
        /// Its shape in the model.
        needed: Vec<u64>,
    },
    /// A tensor has a type that is not read.
    #[error("{}: tensor `{name}` is {dtype}; F32, F16 and BF16 can be read", file.display())]
    Dtype {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
        /// Its type in the file.
        dtype: safetensors::Dtype,
    },
    /// A value is NaN or infinite.
    #[error("{}: tensor `{name}` has values that are not finite (export it again)", file.display())]
    NotFinite {
        /// The file.
        file: PathBuf,
        /// The tensor.
        name: String,
    },
}

impl ModelFileError {
    /// A file that cannot be read or written.
    pub(crate) fn io(file: &Path) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Io {
            file: file.to_path_buf(),
            source,
        }
    }
}
