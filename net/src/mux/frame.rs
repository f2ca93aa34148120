//! The header before each frame: its kind, the stream, and a number.
//!
//! | byte | meaning |
//! |---|---|
//! | 0 | kind |
//! | 1 to 4 | stream, little-endian. Streams of the end that dialled are even |
//! | 5 to 8 | number, little-endian: bytes of data that follow, or bytes that the remote may send more |

use crate::mux::FRAME_BYTES_MAX;
use crate::mux::MuxError;

pub(super) const HEADER_BYTES: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) stream: u32,
    /// Bytes of data that follow, or of credit; 0 for the other kinds.
    pub(super) number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of the stream follow.
    Data,
    /// The sender has sent everything.
    End,
    /// The sender gave up.
    Reset,
    /// The receiver wants no more.
    Stop,
    /// The receiver has read bytes, so that more may be sent.
    Credit,
}

impl Header {
    pub(super) fn new(kind: Kind, stream: u32, number: u32) -> Self {
        Self {
            kind,
            stream,
            number,
        }
    }

    pub(super) fn encode(self) -> [u8; HEADER_BYTES] {
        let kind = match self.kind {
            Kind::Data => 0,
            Kind::End => 1,
            Kind::Reset => 2,
            Kind::Stop => 3,
            Kind::Credit => 4,
        };
        let [a, b, c, d] = self.stream.to_le_bytes();
        let [e, f, g, h] = self.number.to_le_bytes();
        [kind, a, b, c, d, e, f, g, h]
    }

    pub(super) fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, MuxError> {
        let [kind, a, b, c, d, e, f, g, h] = bytes;
        let kind = match kind {
            0 => Kind::Data,
            1 => Kind::End,
            2 => Kind::Reset,
            3 => Kind::Stop,
            4 => Kind::Credit,
            _ => return Err(MuxError::Violation("a frame of an unknown kind")),
        };
        let stream = u32::from_le_bytes([a, b, c, d]);
        let number = u32::from_le_bytes([e, f, g, h]);
        match kind {
            Kind::Data if number == 0 || number as usize > FRAME_BYTES_MAX => Err(
                MuxError::Violation("a frame of data that is empty or above one megabyte"),
            ),
            Kind::End | Kind::Reset | Kind::Stop if number != 0 => Err(MuxError::Violation(
                "a frame with a number that means nothing",
            )),
            _ => Ok(Self::new(kind, stream, number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_has_these_bytes() {
        let header = Header::new(Kind::Data, 0x0102, 0x0304);
        assert_eq!(header.encode(), [0, 2, 1, 0, 0, 4, 3, 0, 0]);
    }

    proptest! {
        #[test]
        fn what_is_decoded_encodes_to_the_same_bytes(bytes: [u8; HEADER_BYTES], kind in 0u8..6) {
            let mut bytes = bytes;
            bytes[0] = kind;
            if let Ok(header) = Header::decode(bytes) {
                prop_assert_eq!(header.encode(), bytes);
                prop_assert!(header.kind != Kind::Data || header.number as usize <= FRAME_BYTES_MAX);
            }
        }
    }
}
