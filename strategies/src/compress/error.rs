//! Why a decoder refuses bytes.

/// Why bytes are not what this codec wrote.
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
    /// The bytes end too early or go on too long.
    #[error("field `{field}`: needs {needed} bytes, {found} are there")]
    Length {
        /// The field.
        field: &'static str,
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// What the group agreed on before is needed to read it, and is another here, or not here.
    #[error(
        "field `{field}` refers to what the group agreed on, and that is not what is held here"
    )]
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
