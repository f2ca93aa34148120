//! The JSON header of a safetensors file.

use murmurate_protocol::SortedMap;
use serde::{Deserialize, Serialize};

/// Largest header in bytes that this build reads, as in the reference implementation.
pub(super) const HEADER_BYTES_MAX: u64 = 100_000_000;

/// Key of the free text in the format.
pub(super) const METADATA: &str = "__metadata__";

/// Type, shape and position of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// `F32`, or `U8` for other data.
    pub(super) dtype: String,
    /// Dimensions, outermost first.
    pub(super) shape: Vec<u64>,
    /// First byte and the byte after the last, from the start of the data.
    pub(super) data_offsets: (u64, u64),
}

impl Entry {
    pub(super) fn bytes(&self) -> u64 {
        self.data_offsets.1.saturating_sub(self.data_offsets.0)
    }

    /// Checks that the shape matches the offsets, and the offsets lie within `data` bytes.
    pub(super) fn fits(&self, data: u64) -> bool {
        let width = match self.dtype.as_str() {
            "F32" => 4u64,
            "U8" => 1,
            _ => return true,
        };
        let values = self.shape.iter().try_fold(width, |n, &d| n.checked_mul(d));
        let (start, end) = self.data_offsets;
        start <= end && end <= data && values == Some(end - start)
    }
}

/// Encodes a header: JSON, padded with spaces to at least `least` bytes and to a multiple of eight,
/// which the format requires.
pub(super) fn encode(
    metadata: &SortedMap<String, String>,
    entries: &SortedMap<String, Entry>,
    least: usize,
) -> Vec<u8> {
    let mut object = serde_json::Map::new();
    if !metadata.is_empty() {
        object.insert(METADATA.to_owned(), serde_json::json!(metadata));
    }
    for (name, entry) in entries {
        object.insert(name.clone(), serde_json::json!(entry));
    }
    let mut bytes = serde_json::Value::Object(object).to_string().into_bytes();
    let padded = bytes.len().max(least).next_multiple_of(8);
    bytes.resize(padded, b' ');
    bytes
}

/// The metadata and the entries of a header, both by name.
pub(super) type Parts = (SortedMap<String, String>, SortedMap<String, Entry>);

/// Parses a header. The error is a description for people.
pub(super) fn decode(bytes: &[u8]) -> Result<Parts, String> {
    let mut object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(|e| format!("its header is not JSON: {e}"))?;
    let metadata = match object.remove(METADATA) {
        Some(value) => serde_json::from_value(value).map_err(|e| format!("its metadata: {e}"))?,
        None => SortedMap::new(),
    };
    let entries = object
        .into_iter()
        .map(|(name, value)| match serde_json::from_value(value) {
            Ok(entry) => Ok((name, entry)),
            Err(e) => Err(format!("its entry `{name}`: {e}")),
        })
        .collect::<Result<_, _>>()?;
    Ok((metadata, entries))
}

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
