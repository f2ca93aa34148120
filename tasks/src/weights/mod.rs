//! Weights in safetensors files: one file, or a Hugging Face directory with one or several.

mod error;
mod files;
mod load;
mod write;

pub use error::ModelFileError;
pub(crate) use files::{ADAPTER, SINGLE, WeightFiles, no_model_in, remove_others};

pub(crate) use load::peft_name;
pub use load::{load_model, load_module, read_model};
pub use write::{ExtraTensor, write_model, write_model_with};
