//! A codec inside another one.

use super::raw::take;
use super::{Codec, CodecError, CodecKind, EncodeContext};
use std::ops::Deref;

/// The codec of what another one passes on. It knows the seeds and the round, and keeps nothing between rounds.
pub(super) struct Inner {
    codec: Box<dyn Codec>,
    memory: Vec<f32>,
}

impl Inner {
    pub(super) const fn new(codec: Box<dyn Codec>) -> Self {
        let memory = Vec::new();
        Self { codec, memory }
    }

    /// The codec that a parameter of the outer one names, with those of its other parameters that both have.
    pub(super) fn named(kind: &CodecKind, parameter: &str) -> Self {
        Self::new(kind.sibling(kind.choice(parameter)).build())
    }

    pub(super) fn encode(
        &mut self,
        values: &[f32],
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut inner = EncodeContext {
            shared_seed: context.shared_seed,
            round: context.round,
            ..EncodeContext::seeded(context.seed, &mut self.memory)
        };
        self.codec.encode(values, &mut inner, out);
    }
}

impl Deref for Inner {
    type Target = dyn Codec;

    fn deref(&self) -> &Self::Target {
        self.codec.as_ref()
    }
}

/// The encoding behind a byte that says that there is one; `None` where nothing was sent.
pub(super) fn sent(bytes: &[u8]) -> Result<Option<&[u8]>, CodecError> {
    let ([sent], rest) = take::<1>(bytes, "sent")?;
    match sent {
        1 => Ok(Some(rest)),
        0 if rest.is_empty() => Ok(None),
        _ => Err(CodecError::OutOfRange { field: "sent" }),
    }
}
