//! Codecs `int8-min-max` and `int4-min-max`: levels between the least and the largest value of a
//! block. They suit values of one sign, as `int8` and `int4` suit values around zero.

use super::format::{Blocks, Format, first_f32, inverse, put_f32, round_to_bits};
use super::int::{INT4_BLOCK, INT8_BLOCK, int8};
use super::planar;
use crate::compress::random::Random;
use crate::compress::raw::Header;
use crate::compress::simd::bounds;
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const INT8_SPEC: CodecSpec = CodecSpec {
    name: "int8-min-max",
    tag: 8,
    summary: "256 levels between least and largest of a block: 1 byte",
    equation: "C(x) = l + s round((x - l) / s), s = (h - l) / 255, l and h the block's least and largest",
    source: "Jacob et al., CVPR 2018 (section 2.1)",
    parameters: &[INT8_BLOCK],
    build: |kind| Box::new(Blocks(MinMax::<8>(kind.count("block")))),
};

pub(in crate::compress) const INT4_SPEC: CodecSpec = CodecSpec {
    name: "int4-min-max",
    tag: 9,
    summary: "16 levels between least and largest of a block: 4 bits",
    equation: "C(x) = l + s round((x - l) / s), s = (h - l) / 15, l and h the block's least and largest",
    source: "Jacob et al., CVPR 2018 (section 2.1)",
    parameters: &[INT4_BLOCK],
    build: |kind| Box::new(Blocks(MinMax::<4>(kind.count("block")))),
};

/// Blockwise affine quantization to `BITS` bits, with B values in a block and L = 2^BITS - 1.
///
/// ```text
/// l, h = min x, max x over the block
/// s    = (h - l) / L
/// q    = round((x - l) / s) in [0, L], ties to even
/// C(x) = l + s q
/// ```
///
/// The error of a value is at most s / 2, and the largest magnitude of the block is at least (h -
/// l) / 2. Hence `||C(x) - x||^2 <= B / L^2 ||x||^2`: 0.063 for 8 bits and B = 4096, 0.28 for 4
/// bits and B = 64. BITS + 64 / B bits for each value.
///
/// Layout of a block: l and s (f32), q in planes of BITS bits. A block of equal values has s = 0
/// and is exact. If h - l would overflow, s is the largest number whose product with L is finite,
/// and values beyond l + L s become that.
///
/// Source: Jacob et al., "Quantization and training of neural networks for efficient
/// integer-arithmetic-only inference" (CVPR 2018), section 2.1, with l itself sent instead of a
/// rounded zero point.
#[derive(Clone, Copy, Debug)]
struct MinMax<const BITS: u32>(usize);

impl<const BITS: u32> MinMax<BITS> {
    const LEVELS: f32 = ((1u32 << BITS) - 1) as f32;
}

impl<const BITS: u32> Format for MinMax<BITS> {
    const SPEC: &'static CodecSpec = if BITS == 8 { &INT8_SPEC } else { &INT4_SPEC };

    fn properties(&self) -> CodecProperties {
        let levels = f64::from(Self::LEVELS);
        CodecProperties {
            dense: BITS == 8,
            // A hundred-thousandth for the rounding of l + s q itself.
            ..CodecProperties::rounding(self.0 as f64 / (levels * levels) + 1e-5)
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with((self.0 as u16).to_le_bytes())
    }

    fn block(&self) -> usize {
        self.0
    }

    fn block_bytes(&self, len: usize) -> usize {
        8 + planar::bytes_for(len, BITS)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let (low, high) = bounds(values);
        let step = high / Self::LEVELS - low / Self::LEVELS;
        // A millionth below what overflows: the product with LEVELS rounds.
        let step = step.min(f32::MAX / Self::LEVELS * 0.999_999);
        let step = if step < f32::MIN_POSITIVE { 0.0 } else { step };
        let per_step = inverse(step);
        let codes = put_f32(step, put_f32(low, bytes));
        planar::write(values, BITS, codes, |_, value| {
            let above = value - low;
            let level = if step == 0.0 { 0.0 } else { above * per_step };
            // The quotient may round to more than the last level.
            round_to_bits(if level < Self::LEVELS {
                level
            } else {
                Self::LEVELS
            }) & 0xff
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (low, rest) = first_f32(bytes);
        let (step, codes) = first_f32(rest);
        if !(low.is_finite() && step.is_finite()) {
            return Err(CodecError::NotFinite { field: "scale" });
        }
        let zero = step.to_bits() == 0;
        let top = step * Self::LEVELS;
        if (!zero && step < f32::MIN_POSITIVE) || !(low + top).is_finite() || !top.is_finite() {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        planar::check(codes, BITS, len, Self::LEVELS as u8)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (low, rest) = first_f32(bytes);
        let (step, codes) = first_f32(rest);
        planar::add(codes, BITS, weight, acc, |code| {
            low + step * code as i32 as f32
        });
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        if BITS == 8 {
            Box::new(Blocks(*self))
        } else {
            int8()
        }
    }
}
