//! A codec's entry in the list of codecs: name, source, parameters with their ranges, constructor.

use super::{Codec, CodecKind};
use crate::parameter::Parameters;
pub use crate::parameter::{Parameter, ParameterError, Range};

/// One codec as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct CodecSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Where it comes from.
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
