//! Files in the safetensors format. They are written and read in pieces, so that neither side holds
//! a second copy of the parameters.
//!
//! The format: the length of the header in eight bytes (little-endian), a JSON header that maps
//! names to type, shape and offsets, then the data, little-endian and row-major.

mod header;
mod reader;
mod writer;

pub use header::TensorFile;
pub use reader::TensorReader;
pub use writer::TensorWriter;

/// Number of f32 values converted at a time: 256 KiB fit into the second-level cache.
const VALUES_AT_A_TIME: usize = 64 * 1024;
