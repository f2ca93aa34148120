//! A codec's entry in the list of codecs (name, source, parameters, constructor), and a codec as data.

use super::Codec;
use crate::kind::Kind;
use crate::parameter::Parameter;
use serde::{Serialize, Serializer};

/// One codec as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct CodecSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The byte that opens its encodings. Never reused for another layout; docs/wire.md lists all.
    pub tag: u8,
    /// Summary, in one line.
    pub summary: &'static str,
    /// Equation, in one line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, at most [`PARAMETERS_MAX`](super::PARAMETERS_MAX).
    pub parameters: &'static [Parameter],
    /// Makes it of parameters within their ranges.
    pub build: fn(&CodecKind) -> Box<dyn Codec>,
}

/// A codec with its parameters, all within their ranges.
pub type CodecKind = Kind<CodecSpec>;

impl CodecKind {
    /// The codec itself.
    pub fn build(&self) -> Box<dyn Codec> {
        (self.spec().build)(self)
    }
}

/// As a table of its parameters, with its name under `codec`.
impl Serialize for CodecKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = self.to_table();
        table.insert("codec".to_owned(), self.name().into());
        table.serialize(serializer)
    }
}
