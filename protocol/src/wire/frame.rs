//! Frames: a version byte, a kind byte and one message.
//!
//! Messages are the same values in all versions. What an older version cannot say, or says in another way,
//! is translated here and nowhere else.

use super::codec::{count, decode_limited, encode_value};
use crate::limits::FRAME_BYTES_MAX;
use crate::wire::{Message, WireError, WireVersion, WireVersions};

/// The kind of a frame that is a bare message; others may wrap one, as in an envelope.
const KIND_PLAIN: u8 = 0;

/// Encodes a message as one frame of the newest version: the version byte, the kind byte, then the message.
///
/// # Panics
/// If the message is longer than [`FRAME_BYTES_MAX`]: every field has a bound, so that is a bug.
pub fn encode(message: &Message) -> Vec<u8> {
    frame(message, WireVersion::NEWEST)
}

/// Encodes a message for a peer with which this version is used. None if that version has no such message:
/// then the peer goes without it.
///
/// # Panics
/// As [`encode`].
pub fn encode_for(message: &Message, version: WireVersion) -> Option<Vec<u8>> {
    (message.since() <= version.number()).then(|| frame(message, version))
}

fn frame(message: &Message, version: WireVersion) -> Vec<u8> {
    let mut frame = vec![version.number(), KIND_PLAIN];
    let body = encode_value(message);
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
    let bytes = 2 + count(message);
    assert!(bytes <= FRAME_BYTES_MAX, "a message of {bytes} bytes");
    bytes
}

/// Decodes one frame of any version that this build speaks.
///
/// # Errors
/// If the bytes are no valid message. Nothing is allocated beyond the frame's own length.
pub fn decode(frame: &[u8]) -> Result<Message, WireError> {
    decode_within(frame, WireVersions::OURS)
}

/// Decodes one frame of one of these versions.
///
/// # Errors
/// As [`decode`].
pub fn decode_within(frame: &[u8], spoken: WireVersions) -> Result<Message, WireError> {
    if frame.len() > FRAME_BYTES_MAX {
        return Err(WireError::TooLong {
            bytes: frame.len() as u64,
            max: FRAME_BYTES_MAX as u64,
        });
    }
    let (version, body) = frame.split_first().ok_or(WireError::Empty)?;
    if !spoken.has(*version) {
        return Err(WireError::Version { theirs: *version });
    }
    let (kind, body) = body.split_first().ok_or(WireError::Empty)?;
    if *kind != KIND_PLAIN {
        return Err(WireError::Kind { kind: *kind });
    }
    let message: Message = decode_limited::<_, FRAME_BYTES_MAX>(body)?;
    if message.since() > *version {
        let name = message.name();
        let why = format!("wire version {version} has no `{name}`");
        return Err(WireError::Undecodable(why));
    }
    message.check()?;
    Ok(message)
}
