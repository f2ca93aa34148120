//! The one file that knows bincode: how values become bytes.
//!
//! bincode is frozen upstream; a compatible crate can take its place here and nowhere else.

use crate::limits::VALUE_BYTES_MAX;
use crate::wire::WireError;
use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::enc::write::SizeWriter;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// bincode 2 with little-endian, fixed-length integers and a limit of `N` bytes on decoded input.
const fn config<const N: usize>() -> Configuration<LittleEndian, Fixint, Limit<N>> {
    bincode::config::legacy().with_limit::<N>()
}

/// Encodes any value of ours the same way, without a version byte: headers, snapshots, records.
///
/// # Panics
/// Never for the crate's own types: they always encode.
pub fn encode_value<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, bincode::config::legacy())
        .expect("the crate's types always encode")
}

/// Decodes what [`encode_value`] wrote; nothing may be left over.
///
/// # Errors
/// If there are more than [`VALUE_BYTES_MAX`] bytes, they do not decode, or some are left over.
pub fn decode_value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    decode_limited::<_, VALUE_BYTES_MAX>(bytes)
}

/// The canonical bytes of a value: what hashes and signatures are over.
///
/// # Panics
/// Never for the crate's own types.
pub fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    encode_value(value)
}

/// How many bytes [`encode_value`] would write.
pub(super) fn count<T: Serialize>(value: &T) -> usize {
    let mut counter = SizeWriter::default();
    bincode::serde::encode_into_writer(value, &mut counter, bincode::config::legacy())
        .expect("messages consist of types that always encode");
    counter.bytes_written
}

/// Decodes a value of at most `N` bytes that [`encode_value`] wrote; nothing may be left over.
///
/// # Errors
/// If there are more than `N` bytes, they do not decode, or some are left over.
pub fn decode_limited<T: DeserializeOwned, const N: usize>(bytes: &[u8]) -> Result<T, WireError> {
    if bytes.len() > N {
        return Err(WireError::TooLong {
            bytes: bytes.len() as u64,
            max: N as u64,
        });
    }
    let (value, used) = bincode::serde::decode_from_slice(bytes, config::<N>())
        .map_err(|error| WireError::Undecodable(error.to_string()))?;
    match bytes.len().saturating_sub(used) {
        0 => Ok(value),
        left => Err(WireError::Trailing { bytes: left as u64 }),
    }
}
