//! The one file that knows bincode: frames of a version byte, a kind byte and one message.
//!
//! bincode is frozen upstream; a compatible crate can take its place here and nowhere else.

use crate::limits::{FRAME_BYTES_MAX, SNAPSHOT_BYTES_MAX};
use crate::wire::{Message, WIRE_VERSION, WireError};
use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// bincode 2 with little-endian, fixed-length integers and a limit of `N` bytes on what is read.
const fn config<const N: usize>() -> Configuration<LittleEndian, Fixint, Limit<N>> {
    bincode::config::legacy().with_limit::<N>()
}

/// The kind of a frame whose body is a bare message. Other kinds may wrap a message, for example
/// in a signed envelope.
const KIND_PLAIN: u8 = 0;

/// Encodes a message as one frame: the version byte, the kind byte, then the message.
///
/// # Panics
/// If the message is longer than [`FRAME_BYTES_MAX`]: every field has a bound, so that is a bug.
pub fn encode(message: &Message) -> Vec<u8> {
    let mut frame = vec![WIRE_VERSION, KIND_PLAIN];
    let body = bincode::serde::encode_to_vec(message, config::<FRAME_BYTES_MAX>())
        .expect("messages consist of types that always encode");
    frame.extend_from_slice(&body);
    assert!(
        frame.len() <= FRAME_BYTES_MAX,
        "a message of {} bytes",
        frame.len()
    );
    frame
}

/// Decodes one frame.
///
/// # Errors
/// What is wrong with the bytes. Nothing is allocated beyond the frame's own length.
pub fn decode(frame: &[u8]) -> Result<Message, WireError> {
    if frame.len() > FRAME_BYTES_MAX {
        return Err(WireError::TooLong {
            bytes: frame.len() as u64,
            max: FRAME_BYTES_MAX as u64,
        });
    }
    let (version, body) = frame.split_first().ok_or(WireError::Empty)?;
    if *version != WIRE_VERSION {
        return Err(WireError::Version { theirs: *version });
    }
    let (kind, body) = body.split_first().ok_or(WireError::Empty)?;
    if *kind != KIND_PLAIN {
        return Err(WireError::Kind { kind: *kind });
    }
    let message: Message = decode_limited::<_, FRAME_BYTES_MAX>(body)?;
    message.check()?;
    Ok(message)
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
/// What is wrong with the bytes.
pub fn decode_value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    if bytes.len() > SNAPSHOT_BYTES_MAX {
        return Err(WireError::TooLong {
            bytes: bytes.len() as u64,
            max: SNAPSHOT_BYTES_MAX as u64,
        });
    }
    decode_limited::<_, SNAPSHOT_BYTES_MAX>(bytes)
}

/// The canonical bytes of a value: what hashes and signatures are over.
///
/// # Panics
/// Never for the crate's own types.
pub fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    encode_value(value)
}

fn decode_limited<T: DeserializeOwned, const N: usize>(bytes: &[u8]) -> Result<T, WireError> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, config::<N>())
        .map_err(|error| WireError::Undecodable(error.to_string()))?;
    match bytes.len().saturating_sub(used) {
        0 => Ok(value),
        left => Err(WireError::Trailing { bytes: left as u64 }),
    }
}
