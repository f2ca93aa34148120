//! The start of every encoding: the codec's byte, then its parameters.

use super::CodecError;

/// Codec and parameters as bytes. Two codecs that read each other's bytes have the same header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl Header {
    /// The most bytes that codec and parameters take.
    const MOST: usize = 24;

    /// A codec without parameters.
    pub(super) const fn new(tag: u8) -> Self {
        let mut bytes = [0; Self::MOST];
        bytes[0] = tag;
        Self { bytes, len: 1 }
    }

    /// One parameter more, in little-endian bytes.
    pub(super) const fn with<const N: usize>(mut self, parameter: [u8; N]) -> Self {
        let mut at = 0;
        while at < N {
            self.bytes[self.len] = parameter[at];
            (self.len, at) = (self.len + 1, at + 1);
        }
        self
    }

    /// The bytes that open an encoding.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Takes itself off, if it is there.
    pub(super) fn expect<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], CodecError> {
        let needed = self.len;
        let found = bytes.len();
        let short = |field| CodecError::Length {
            field,
            needed,
            found,
        };
        let tag = *bytes.first().ok_or(short("codec"))?;
        if tag != self.bytes[0] {
            return Err(CodecError::Codec {
                expected: self.bytes[0],
                found: tag,
            });
        }
        let (head, rest) = bytes.split_at_checked(needed).ok_or(short("parameters"))?;
        if head != self.bytes() {
            return Err(CodecError::OutOfRange {
                field: "parameters",
            });
        }
        Ok(rest)
    }
}
