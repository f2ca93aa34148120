//! Errors of decoders.

/// Why a decoder refuses bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Another codec, or other parameters.
    #[error("field `codec`: expected {expected}, found {found}")]
    Codec {
        /// This codec's tag.
        expected: u8,
        /// The tag that was found.
        found: u8,
    },
    /// Too few or too many bytes.
    #[error("field `{field}`: needs {needed} bytes, {found} are there")]
    Length {
        /// The field.
        field: &'static str,
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// The encoding refers to a common state of the group that this peer does not hold.
    #[error("field `{field}` refers to a common state of the group that this peer does not hold")]
    NotHeld {
        /// The field.
        field: &'static str,
    },
    /// A field has a value that the codec never writes.
    #[error("field `{field}` is out of range")]
    OutOfRange {
        /// The field.
        field: &'static str,
    },
    /// NaN or infinity.
    #[error("field `{field}` is not finite")]
    NotFinite {
        /// The field.
        field: &'static str,
    },
}
