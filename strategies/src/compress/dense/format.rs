//! Codecs that encode one block after another, each block by itself. A format says how a block is
//! written, and `Blocks` makes a codec of a format.
//!
//! A block fits into the first-level cache, so memory is read and written once, with error feedback
//! too.

use crate::compress::random::Random;
use crate::compress::raw::{Header, expect_len};
use crate::compress::simd::kernel;
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, Tiles};
use murmurate_protocol::BytesBound;

/// The most values of a block.
pub(in crate::compress) const BLOCK_MAX: usize = 4096;

/// The most bytes of a block: f32 and 64 beside them.
const BLOCK_BYTES_MAX: usize = 4 * BLOCK_MAX + 64;

/// How one block is encoded. Implementations mark `write`, `check` and `add` as
/// `#[inline(always)]`: they are compiled for every level of vector instructions.
pub(in crate::compress) trait Format: Clone + Send + 'static {
    /// The codec's entry in the list.
    const SPEC: &'static CodecSpec;

    /// What the codec is, as data.
    fn properties(&self) -> CodecProperties;

    /// Appends the parameters that decoders must have in common to the opening byte.
    fn parameters(&self, opening: Header) -> Header {
        opening
    }

    /// Values in a block, at most [`BLOCK_MAX`]; the last one may be shorter.
    fn block(&self) -> usize {
        BLOCK_MAX
    }

    /// Bytes of a block of `len` values.
    fn block_bytes(&self, len: usize) -> usize;

    /// Encodes a block into exactly its bytes.
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]);

    /// Refuses a block that `write` cannot have written, as far as `add` must know.
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError>;

    /// `acc += weight * decode(bytes)` of a block that passed `check`.
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]);

    /// The codec for reductions of such contributions.
    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Blocks(self.clone()))
    }
}

/// The codec of a format.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::compress) struct Blocks<F>(pub(in crate::compress) F);

impl<F: Format> Blocks<F> {
    /// What opens an encoding.
    fn header(&self) -> Header {
        self.0.parameters(Header::new(F::SPEC.tag))
    }

    /// Bytes of `len` values behind the header.
    fn body_bytes(&self, len: usize) -> usize {
        let block = self.0.block();
        let rest = match len % block {
            0 => 0,
            rest => self.0.block_bytes(rest),
        };
        len / block * self.0.block_bytes(block) + rest
    }

    /// The blocks of an encoding of `len` values.
    fn body<'a>(&self, bytes: &'a [u8], len: usize) -> Result<&'a [u8], CodecError> {
        let body = self.header().expect(bytes)?;
        expect_len(body, self.body_bytes(len), "values")?;
        Ok(body)
    }
}

impl<F: Format> Codec for Blocks<F> {
    fn properties(&self) -> CodecProperties {
        self.0.properties()
    }

    fn bytes_bound(&self) -> BytesBound {
        let block = self.0.block();
        let whole = self.0.block_bytes(block);
        // The last block may be short, and is then no longer than a whole one.
        BytesBound {
            fixed: (self.header().bytes().len() + whole) as u64,
            per_1024: (1024 * whole).div_ceil(block) as u64,
        }
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let header = self.header();
        out.reserve(header.bytes().len() + self.body_bytes(values.len()));
        out.extend_from_slice(header.bytes());
        encode_all(&self.0, values, context.seed, out);
    }

    fn encode_residual(
        &mut self,
        delta: &[f32],
        residual: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        assert_eq!(delta.len(), residual.len());
        let header = self.header();
        out.reserve(header.bytes().len() + self.body_bytes(delta.len()));
        out.extend_from_slice(header.bytes());
        encode_residual_all(&self.0, delta, residual, context.seed, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let body = self.body(bytes, acc.len())?;
        check_all(&self.0, body, acc.len())?;
        add_all(&self.0, body, weight, acc);
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
            bodies.push((self.body(bytes, len)?, *weight));
        }
        sum_all(&self.0, &bodies, len, tiles)
    }

    fn has_tiles(&self, _: &[u8]) -> bool {
        true
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        self.0.aggregate()
    }
}

kernel! {
    fn encode_all<'a, F: Format>(
        format: &'a F,
        values: &'a [f32],
        seed: u64,
        out: &'a mut Vec<u8>,
    ) {
        let (block, random) = (format.block(), Random::new(seed));
        let mut batch = [0u8; BLOCK_BYTES_MAX];
        for (at, values) in values.chunks(block).enumerate() {
            let bytes = &mut batch[..format.block_bytes(values.len())];
            format.write(values, random.from(at * block), bytes);
            out.extend_from_slice(bytes);
        }
    }

    fn encode_residual_all<'a, F: Format>(
        format: &'a F,
        delta: &'a [f32],
        residual: &'a mut [f32],
        seed: u64,
        out: &'a mut Vec<u8>,
    ) {
        let (block, random) = (format.block(), Random::new(seed));
        let mut batch = [0u8; BLOCK_BYTES_MAX];
        let blocks = delta.chunks(block).zip(residual.chunks_mut(block));
        for (at, (delta, residual)) in blocks.enumerate() {
            for (e, d) in residual.iter_mut().zip(delta) {
                *e += d;
            }
            let bytes = &mut batch[..format.block_bytes(residual.len())];
            format.write(residual, random.from(at * block), bytes);
            format.add(bytes, -1.0, residual);
            out.extend_from_slice(bytes);
        }
    }

    fn check_all<'a, F: Format>(
        format: &'a F,
        body: &'a [u8],
        len: usize,
    ) -> Result<(), CodecError> {
        let block = format.block();
        let mut left = len;
        for bytes in body.chunks(format.block_bytes(block)) {
            format.check(bytes, left.min(block))?;
            left = left.saturating_sub(block);
        }
        Ok(())
    }

    fn add_all<'a, F: Format>(format: &'a F, body: &'a [u8], weight: f32, acc: &'a mut [f32]) {
        let block = format.block();
        let blocks = body.chunks(format.block_bytes(block));
        for (bytes, acc) in blocks.zip(acc.chunks_mut(block)) {
            format.add(bytes, weight, acc);
        }
    }

    fn sum_all<'a, F: Format>(
        format: &'a F,
        bodies: &'a [(&'a [u8], f32)],
        len: usize,
        tiles: &'a mut dyn Tiles,
    ) -> Result<(), CodecError> {
        let block = format.block();
        let (blocks, block_bytes) = (BLOCK_MAX / block, format.block_bytes(block));
        for (at, start) in (0..len).step_by(blocks * block).enumerate() {
            let end = len.min(start + blocks * block);
            let tile = tiles.begin(start..end);
            for (body, weight) in bodies {
                let bytes = body[at * blocks * block_bytes..].chunks(block_bytes);
                for (bytes, acc) in bytes.zip(tile.chunks_mut(block)) {
                    format.check(bytes, acc.len())?;
                    format.add(bytes, *weight, acc);
                }
            }
            tiles.end(start..end);
        }
        Ok(())
    }
}

/// Splits the first f32 off a block.
#[inline(always)]
pub(in crate::compress) fn first_f32(bytes: &[u8]) -> (f32, &[u8]) {
    let (head, rest) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    (f32::from_le_bytes(*head), rest)
}

/// Writes an f32 at the front of a block and returns the rest of the block.
#[inline(always)]
pub(in crate::compress) fn put_f32(value: f32, bytes: &mut [u8]) -> &mut [u8] {
    let (head, rest) = bytes.split_at_mut(4);
    head.copy_from_slice(&value.to_le_bytes());
    rest
}

/// Refuses a scale that is neither zero nor a normal number with a finite product with `most`. With
/// a scale of zero all codes must be `zero`.
#[inline(always)]
pub(in crate::compress) fn check_scale(scale: f32, most: f32) -> Result<(), CodecError> {
    if !scale.is_finite() {
        return Err(CodecError::NotFinite { field: "scale" });
    }
    let zero = scale.to_bits() == 0;
    if !zero && (scale < f32::MIN_POSITIVE || !(most * scale).is_finite()) {
        return Err(CodecError::OutOfRange { field: "scale" });
    }
    Ok(())
}

/// `largest / levels` as a scale that `check_scale` accepts.
#[inline(always)]
pub(in crate::compress) fn scale_of(largest: f32, levels: f32) -> f32 {
    let scale = largest / levels;
    if scale < f32::MIN_POSITIVE {
        0.0
    } else if (levels * scale).is_finite() {
        scale
    } else {
        // The quotient of the very largest values may round up so that `levels` of it overflow.
        scale.next_down()
    }
}

/// `1 / scale`, and 0 of 0.
#[inline(always)]
pub(in crate::compress) fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}

/// Adding this to a value in [-2^22, 2^22] rounds it to the nearest integer, ties to even, and
/// leaves that integer in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The nearest integer in the low bits, in two's complement; the others are the ruler's.
#[inline(always)]
pub(in crate::compress) fn round_to_bits(value: f32) -> u32 {
    (value + ROUND).to_bits()
}

/// The nearest integer, modulo 256.
#[inline(always)]
pub(in crate::compress) fn round_to_byte(value: f32) -> u8 {
    (value + ROUND).to_bits() as u8
}
