//! Frames: a version byte, a kind byte and one message.

use super::codec::{count_limited, decode_limited, encode_limited};
use crate::limits::FRAME_BYTES_MAX;
use crate::wire::{Message, WIRE_VERSION, WireError};

/// The kind of a frame whose body is a bare message. Other kinds may wrap a message, for example
/// in a signed envelope.
const KIND_PLAIN: u8 = 0;

/// Encodes a message as one frame: the version byte, the kind byte, then the message.
///
/// # Panics
/// If the message is longer than [`FRAME_BYTES_MAX`]: every field has a bound, so that is a bug.
pub fn encode(message: &Message) -> Vec<u8> {
    let mut frame = vec![WIRE_VERSION, KIND_PLAIN];
    let body = encode_limited::<_, FRAME_BYTES_MAX>(message);
    frame.extend_from_slice(&body);
    assert!(
        frame.len() <= FRAME_BYTES_MAX,
        "a message of {} bytes",
        frame.len()
    );
    frame
}

/// Length in bytes of the frame that [`encode`] makes of a message, without making it.
///
/// # Panics
/// As [`encode`].
pub fn frame_bytes(message: &Message) -> usize {
    let bytes = 2 + count_limited::<_, FRAME_BYTES_MAX>(message);
    assert!(bytes <= FRAME_BYTES_MAX, "a message of {bytes} bytes");
    bytes
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
