//! Frames on the socket: the length of the JSON text as u32 in little endian, then the text.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// Longer than allowed.
    #[error("a message of {bytes} bytes, where at most {max} are allowed")]
    TooLong {
        /// As announced.
        bytes: usize,
        /// As allowed.
        max: usize,
    },
    /// Not the JSON of a message.
    #[error("a message that cannot be read: {0}")]
    Malformed(String),
}

/// The bytes of a message.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(|e| FrameError::Malformed(e.to_string()))?;
    let len = bytes.len() - 4;
    let head = u32::try_from(len).map_err(|_| FrameError::TooLong {
        bytes: len,
        max: u32::MAX as usize,
    })?;
    bytes[..4].copy_from_slice(&head.to_le_bytes());
    Ok(bytes)
}

/// Bytes that have arrived, and the messages in them. It never holds more than one message and one
/// read beyond it.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Takes bytes in.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message; `None` where more bytes must arrive first. The length is checked before
    /// anything is kept for it.
    pub(crate) fn next<T: DeserializeOwned>(
        &mut self,
        max: usize,
    ) -> Result<Option<T>, FrameError> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*head) as usize;
        if len > max {
            return Err(FrameError::TooLong { bytes: len, max });
        }
        let Some(text) = rest.get(..len) else {
            return Ok(None);
        };
        let read = serde_json::from_slice(text);
        self.bytes.drain(..4 + len);
        let malformed = |e: serde_json::Error| FrameError::Malformed(e.to_string());
        read.map(Some).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::FromTrainer;

    #[test]
    fn messages_arrive_whole_in_any_pieces() {
        let step = FromTrainer::Step {
            samples: 64,
            loss: Some(0.25),
        };
        let mut bytes = encode(&step).unwrap();
        bytes.extend(encode(&FromTrainer::Done).unwrap());
        let mut inbox = Inbox::default();
        let mut heard = Vec::new();
        for byte in bytes {
            inbox.push(&[byte]);
            while let Some(message) = inbox.next::<FromTrainer>(100).unwrap() {
                heard.push(message);
            }
        }
        assert_eq!(heard, [step, FromTrainer::Done]);
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_its_bytes_arrive() {
        let mut inbox = Inbox::default();
        inbox.push(&101_u32.to_le_bytes());
        let error = inbox.next::<FromTrainer>(100).unwrap_err().to_string();
        assert_eq!(
            error,
            "a message of 101 bytes, where at most 100 are allowed"
        );
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for text in [
            "",
            "{}",
            "[1]",
            "{\"t\":\"fly\"}",
            "{\"t\":\"step\",\"samples\":-1}",
        ] {
            let mut inbox = Inbox::default();
            inbox.push(&u32::try_from(text.len()).unwrap().to_le_bytes());
            inbox.push(text.as_bytes());
            assert!(inbox.next::<FromTrainer>(100).is_err(), "{text}");
        }
    }
}
