//! A file as a manifest lists it.

use serde::{Deserialize, Serialize};

/// A complete file, as listed in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorFile {
    /// Name of the file in its directory.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 of everything before the data.
    pub header_blake3: String,
    /// BLAKE3 of the data.
    pub data_blake3: String,
}
