//! How contributions are encoded, as a strategy keeps it.

use crate::compress::CodecKind;

/// How contributions are encoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compression {
    pub(super) codec: CodecKind,
    pub(super) error_feedback: bool,
    pub(super) choice: Option<Choice>,
}

/// From which codecs the members of a round choose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// Rounds after which the codec follows from the waits again.
    pub(super) every: u64,
    /// The share of the time that training should have, in thousandths.
    pub(super) share: u16,
    /// Those behind the configured one, the most exact first.
    pub(super) codecs: Vec<CodecKind>,
}
