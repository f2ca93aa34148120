//! Codec `f32`: the values themselves. Lossless.

use crate::compress::raw::{add_f32s, expect_finite, expect_len, expect_tag, push_f32s};
use crate::compress::simd::kernel;
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, Reduction, Tiles,
};
use murmurate_protocol::BytesBound;

pub(crate) const SPEC: CodecSpec = CodecSpec {
    name: "f32",
    tag: 1,
    summary: "the values themselves: 4 bytes",
    equation: "C(x) = x",
    source: "-",
    parameters: &[],
    build: |_| Box::new(F32),
};

/// `C(x) = x`: lossless. It needs no error feedback and works with every contribution.
///
/// Layout: the codec's byte, then 4 bytes for each value, little-endian.
#[derive(Clone, Copy, Debug, Default)]
pub struct F32;

impl Codec for F32 {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            reduction: Reduction::WhileEncoded,
            ..CodecProperties::LOSSLESS
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        BytesBound {
            fixed: 1,
            per_1024: 4096,
        }
    }

    fn encode(&mut self, values: &[f32], _: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        out.reserve(1 + 4 * values.len());
        out.push(SPEC.tag);
        push_f32s(values, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let values = expect_tag(bytes, SPEC.tag)?;
        expect_len(values, 4 * acc.len(), "values")?;
        expect_finite(values, "values")?;
        add_f32s(values, weight, acc);
        Ok(())
    }

    fn decode_sum(
        &self,
        inputs: &[(&[u8], f32)],
        len: usize,
        tiles: &mut dyn Tiles,
    ) -> Result<(), CodecError> {
        let mut bodies = Vec::with_capacity(inputs.len());
        for (bytes, weight) in inputs {
            let values = expect_tag(bytes, SPEC.tag)?;
            expect_len(values, 4 * len, "values")?;
            bodies.push((values, *weight));
        }
        sum(&bodies, len, tiles)
    }

    fn has_tiles(&self, _: &[u8]) -> bool {
        true
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Self)
    }
}

/// Values of a tile: with as many of an input they fit into the first-level cache.
const TILE: usize = 2048;

kernel! {
    fn sum<'a>(
        bodies: &'a [(&'a [u8], f32)],
        len: usize,
        tiles: &'a mut dyn Tiles,
    ) -> Result<(), CodecError> {
        for start in (0..len).step_by(TILE) {
            let end = len.min(start + TILE);
            let tile = tiles.begin(start..end);
            for (body, weight) in bodies {
                let bytes = &body[4 * start..4 * end];
                expect_finite(bytes, "values")?;
                add_f32s(bytes, *weight, tile);
            }
            tiles.end(start..end);
        }
        Ok(())
    }
}
