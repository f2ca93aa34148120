//! Files in the safetensors format, written while the tensors stream by and read back piece by
//! piece: neither side ever holds a second copy of the parameters.
//!
//! The format: eight bytes of header length (little-endian), a JSON header that maps names to type,
//! shape and place, then the data, little-endian and row-major.

mod header;
mod reader;
mod writer;

pub use reader::TensorReader;
pub use writer::{TensorFile, TensorWriter};

/// f32 values that are converted and moved at a time: 256 KiB fits the second-level cache.
const VALUES_AT_A_TIME: usize = 64 * 1024;
