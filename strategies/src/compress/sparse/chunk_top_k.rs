//! Codec `chunk-top-k`: the largest of every chunk. Biased: needs error feedback.

use super::largest::Largest;
use super::pick::{DECAY, DENSITY, Pick, Picked, kept};
use super::select::Source;
use super::top_k;
use super::values::VALUES;
use crate::compress::raw::Header;
use crate::compress::{CodecProperties, CodecSpec, EncodeContext, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "chunk-top-k",
    tag: 29,
    summary: "the largest values of every chunk; with 2 bits a value and a decay it is SparseLoCo",
    equation: "e' = decay e + x, C = the density * chunk largest of every chunk of e', written by `values`",
    source: "Sarfi et al., arXiv 2508.15706",
    parameters: &[DENSITY, CHUNK, VALUES, DECAY],
    build: |kind| {
        let pick = ChunkTopK {
            density: kind.number("density"),
            chunk: kind.count("chunk"),
            largest: Largest::default(),
        };
        Picked::of(kind, pick)
    },
};

const CHUNK: Parameter = Parameter {
    name: "chunk",
    range: Range::PowerOfTwo(16, 65_536),
    default: Some(4096.0),
    about: "the number of values in a chunk, such as 4096",
};

/// The k values of largest magnitude of every chunk of c values.
///
/// ```text
/// k       = ceil(density c)
/// C(x)_i  = x_i where |x_i| is among the k largest of its chunk (ties: the lowest index), else 0
/// ```
///
/// `||C(x) - x||^2 <= (1 - density) ||x||^2` in every chunk. SparseLoCo is this with `density =
/// 0.015625` (64 of 4096), `values = "two-bit"` and `decay = 0.95`: `v = delta + decay e`, about
/// 9.6 bits for each kept value. Contributions are sent relative to the anchor.
///
/// Layout: as `top-k`, with the chunk (u32) after the density. Of a last, shorter chunk as many
/// values are kept as of a whole one.
///
/// Source: Sarfi et al., "Communication efficient LLM pre-training with SparseLoCo" (arXiv
/// 2508.15706).
#[derive(Clone, Debug)]
struct ChunkTopK {
    density: f64,
    chunk: usize,
    largest: Largest,
}

impl Pick for ChunkTopK {
    fn properties(&self) -> CodecProperties {
        top_k::properties(self.density)
    }

    fn parameters(&self, opening: Header) -> Header {
        let chunk = (self.chunk as u32).to_le_bytes();
        let density = self.density.to_le_bytes();
        opening.with(density).with(chunk)
    }

    fn density_max(&self) -> f64 {
        kept(self.density, self.chunk) as f64 / self.chunk as f64
    }

    fn beyond(&self) -> usize {
        kept(self.density, self.chunk)
    }

    fn most(&self, len: usize) -> usize {
        (len.div_ceil(self.chunk) * kept(self.density, self.chunk)).min(len)
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        _: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        chosen.clear();
        let (kept, largest) = (kept(self.density, self.chunk), &mut self.largest);
        source.each_chunk(self.chunk, |first, values, _| {
            largest.choose_chunk(values, first, kept, chosen);
        });
    }
}
