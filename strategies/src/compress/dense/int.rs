//! Codecs `int8` and `int4`: whole multiples of a scale, which is the largest magnitude of a block.
//! Not stochastic: the same values give the same bytes.

use super::format::{
    Blocks, Format, check_scale, first_f32, inverse, put_f32, round_to_bits, round_to_byte,
    scale_of,
};
use super::planar;
use crate::compress::random::Random;
use crate::compress::raw::Header;
use crate::compress::simd::largest;
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec, Parameter, Range};

pub(in crate::compress) const INT8_SPEC: CodecSpec = CodecSpec {
    name: "int8",
    tag: 6,
    summary: "255 levels of the largest magnitude of a block: 1 byte",
    equation: "C(x) = s round(x / s), s = max |x| / 127 of the block",
    source: "Dettmers et al., ICLR 2022; arXiv 2412.01152",
    parameters: &[INT8_BLOCK],
    build: |kind| Box::new(Blocks(Int8(kind.count("block")))),
};

pub(in crate::compress) const INT4_SPEC: CodecSpec = CodecSpec {
    name: "int4",
    tag: 7,
    summary: "15 levels of the largest magnitude of a block: 4 bits",
    equation: "C(x) = s round(x / s), s = max |x| / 7 of the block",
    source: "Dettmers et al., ICLR 2022; Dettmers and Zettlemoyer, ICML 2023",
    parameters: &[INT4_BLOCK],
    build: |kind| Box::new(Blocks(Int4(kind.count("block")))),
};

/// Values that share a scale. With 4096, scales cost 0.1 % of the bytes, one outlier makes at most
/// 4096 values coarser, and a block stays in the first-level cache.
pub(in crate::compress) const INT8_BLOCK: Parameter = Parameter {
    name: "block",
    range: Range::PowerOfTwo(64, 4096),
    default: Some(4096.0),
    about: "the number of values that share a scale, such as 4096",
};

/// As [`INT8_BLOCK`], for 4 bits. Above 128, one outlier can round all other values of a block to zero.
pub(in crate::compress) const INT4_BLOCK: Parameter = Parameter {
    name: "block",
    range: Range::PowerOfTwo(16, 128),
    default: Some(64.0),
    about: "the number of values that share a scale, such as 64",
};

/// Blockwise absolute-maximum quantization to a byte, with B values in a block.
///
/// ```text
/// s_b  = max |x| over block b / 127
/// q    = round(x / s_b) in [-127, 127], ties to even
/// C(x) = s_b q
/// ```
///
/// The error of a value is at most s_b / 2, hence `||C(x) - x||^2 <= B / 254^2 ||x||^2` in every
/// block (0.0635 for 4096). The bound is reached only if one value outweighs all others. No bias
/// over symmetric values.
///
/// 8 + 32 / B bits for each value. Works for deltas, gradients and parameters.
///
/// Layout of a block: s_b (f32), a signed byte for each value. Blocks whose scale would be below
/// the smallest normal f32 become zero.
///
/// Source: Dettmers et al., "8-bit optimizers via block-wise quantization" (ICLR 2022), section
/// 2.1, with linear instead of dynamic levels, as in the int8 all-reduce of pseudo-gradients of
/// Jaghouar et al., "INTELLECT-1" (arXiv 2412.01152).
#[derive(Clone, Copy, Debug)]
struct Int8(usize);

impl Format for Int8 {
    const SPEC: &'static CodecSpec = &INT8_SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties::rounding(self.0 as f64 / (254.0 * 254.0))
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with((self.0 as u16).to_le_bytes())
    }

    fn block(&self) -> usize {
        self.0
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 + len
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let scale = scale_of(largest(values), 127.0);
        let per_scale = inverse(scale);
        for (byte, value) in put_f32(scale, bytes).iter_mut().zip(values) {
            *byte = round_to_byte(value * per_scale);
        }
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], _: usize) -> Result<(), CodecError> {
        let (scale, levels) = first_f32(bytes);
        check_scale(scale, 127.0)?;
        if levels.iter().fold(false, |seen, q| seen | (*q == 0x80)) {
            Err(CodecError::OutOfRange { field: "values" })
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (scale, levels) = first_f32(bytes);
        for (a, q) in acc.iter_mut().zip(levels) {
            // Scaled first, weighted second: what is added is a multiple of decode(bytes).
            *a += weight * (scale * f32::from(*q as i8));
        }
    }
}

/// Blockwise absolute-maximum quantization to four bits: as [`Int8`], with 7 instead of 127.
///
/// `||C(x) - x||^2 <= B / 14^2 ||x||^2` (0.33 for blocks of 64), which is contractive up to B =
/// 128. 4 + 32 / B bits for each value. Contributions are sent relative to the anchor, because it
/// is too coarse for parameters. Reductions return as `int8`.
///
/// Layout of a block: s_b (f32), q + 7 in planes of 4 bits.
///
/// Source: Dettmers et al. (ICLR 2022), section 2.1; block sizes for 4 bits: Dettmers and
/// Zettlemoyer, "The case for 4-bit precision" (ICML 2023), section 5.
#[derive(Clone, Copy, Debug)]
struct Int4(usize);

impl Format for Int4 {
    const SPEC: &'static CodecSpec = &INT4_SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties {
            dense: false,
            ..CodecProperties::rounding(self.0 as f64 / (14.0 * 14.0))
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with((self.0 as u16).to_le_bytes())
    }

    fn block(&self) -> usize {
        self.0
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 + planar::bytes_for(len, 4)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let scale = scale_of(largest(values), 7.0);
        let per_scale = inverse(scale);
        planar::write(values, 4, put_f32(scale, bytes), |_, value| {
            round_to_bits(value * per_scale).wrapping_add(7) & 15
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (scale, codes) = first_f32(bytes);
        check_scale(scale, 7.0)?;
        planar::check(codes, 4, len, 14)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (scale, codes) = first_f32(bytes);
        planar::add(codes, 4, weight, acc, |code| {
            scale * (code as i32 as f32 - 7.0)
        });
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}

/// `int8` with blocks of 4096: the codec in which reductions of coarse contributions return.
pub(in crate::compress) fn int8() -> Box<dyn Codec> {
    Box::new(Blocks(Int8(4096)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::EncodeContext;

    fn decoded(values: &[f32]) -> Vec<f32> {
        let (mut bytes, mut acc) = (Vec::new(), vec![0.0; values.len()]);
        let mut memory = Vec::new();
        let mut context = EncodeContext::seeded(0, &mut memory);
        int8().encode(values, &mut context, &mut bytes);
        int8().decode_add(&bytes, 1.0, &mut acc).unwrap();
        acc
    }

    #[test]
    fn the_very_largest_values_stay_finite() {
        for value in [f32::MAX, f32::MAX.next_down(), f32::MAX / 2.0] {
            let acc = decoded(&[value, -value]);
            assert!(
                (acc[0] / value - 1.0).abs() < 1e-6 && acc[0] == -acc[1],
                "{acc:?}"
            );
        }
    }

    #[test]
    fn an_outlier_coarsens_its_own_block_only() {
        let mut values = vec![1.0f32; 2 * 4096];
        values[7] = 1000.0;
        let acc = decoded(&values);
        assert_eq!(acc[8], 0.0);
        assert!((acc[4096] - 1.0).abs() < 1e-6);
    }
}
