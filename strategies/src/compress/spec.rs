//! A codec's entry in the list of codecs: name, source, parameters with their ranges, constructor.

use super::{Codec, CodecKind};
use crate::parameter::Parameters;
pub use crate::parameter::{Parameter, ParameterError, Range};

/// One codec as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct CodecSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The byte that opens its encodings. Never reused for another layout; docs/wire.md lists all.
    pub tag: u8,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it computes, in one line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, at most [`PARAMETERS_MAX`](super::PARAMETERS_MAX).
    pub parameters: &'static [Parameter],
    /// Makes it of parameters within their ranges.
    pub build: fn(&CodecKind) -> Box<dyn Codec>,
}

impl CodecSpec {
    /// Its parameters, as keys of `[compression]`.
    pub const fn parameters(&self) -> Parameters {
        Parameters {
            table: "compression",
            method: self.name,
            list: self.parameters,
        }
    }
}
