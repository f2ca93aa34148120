//! Codec `nuqsgd`: powers of two of a bucket's 2-norm, rounded at random. As `qsgd`, with more
//! levels near zero, where most values are.

use super::format::{Blocks, Format, check_scale, first_f32, inverse, put_f32};
use super::int::int8;
use super::planar;
use super::qsgd::BUCKET;
use crate::compress::random::Random;
use crate::compress::raw::Header;
use crate::compress::simd::{sum_of_squares, to_finite};
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "nuqsgd",
    tag: 15,
    summary: "powers of two of a bucket's 2-norm, rounded at random: 4 bits",
    equation: "C(x) = ||x|| sgn(x) h, h one of 0, 2^-6 .. 1 around |x| / ||x||, E C(x) = x",
    source: "Ramezani-Kebrya et al., JMLR 2021",
    parameters: &[BUCKET],
    build: |kind| Box::new(Blocks(Nuqsgd(kind.count("bucket")))),
};

/// The least level is 2^-S of the norm: eight levels with zero, and a sign.
const S: u32 = 6;

/// Nonuniform stochastic quantization over buckets of d values.
///
/// ```text
/// r    = |x| / ||x||_2,  levels 0, 2^-6, 2^-5, .. 1
/// h    = the level above r with probability (r - below) / (above - below), else the one below
/// C(x) = ||x||_2 sgn(x) h                              E C(x) = x
/// ```
///
/// `E||C(x) - x||^2 <= (1/8 + d / 2^14) ||x||^2` for d < 2^13: 0.16 for the default d = 512, where
/// `qsgd` with the same four bits has 3.2. It is contractive, so error feedback is allowed. 4 + 32
/// / d bits for each value. Contributions are sent relative to the anchor; reductions return as
/// `int8`.
///
/// Layout of a block: the norm (f32), codes of 4 bits in planes: 0 for zero, j + 7 for 2^j, and 8
/// more for a negative value. Special cases as in `qsgd`.
///
/// Source: Ramezani-Kebrya et al., "NUQSGD" (JMLR 22, 2021), section 3; bound: theorem 4.
#[derive(Clone, Copy, Debug)]
struct Nuqsgd(usize);

impl Format for Nuqsgd {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        let bound = 0.125 + self.0 as f64 / f64::from(1u32 << (2 * S + 2));
        CodecProperties {
            dense: false,
            ..CodecProperties::random(bound)
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
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        let norm = to_finite(sum_of_squares(values).sqrt());
        let norm = if norm < f32::MIN_POSITIVE { 0.0 } else { norm };
        let per_norm = inverse(norm);
        let least = 1.0 / (1u32 << S) as f32;
        planar::write(values, 4, put_f32(norm, bytes), |index, value| {
            let ratio = value.abs() * per_norm;
            let ratio = if ratio < 1.0 { ratio } else { 1.0 };
            let random = random.bits(index);
            // The fraction is the probability of the power above: a random one carries into the exponent.
            let exponent = (ratio.to_bits() + (random >> 9)) >> 23;
            let power = exponent.wrapping_sub(127 - S - 1);
            let uniform = (random >> 8) as i32 as f32 * (1.0 / 16_777_216.0);
            let lowest = u32::from(uniform < ratio * (1u32 << S) as f32);
            let code = if ratio < least { lowest } else { power };
            let sign = if code == 0 { 0 } else { value.to_bits() >> 31 };
            code | (sign << 3)
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (norm, codes) = first_f32(bytes);
        check_scale(norm, 1.0)?;
        planar::check(codes, 4, len, 15)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (norm, codes) = first_f32(bytes);
        planar::add(codes, 4, weight, acc, |code| {
            let power = code & 7;
            let level = f32::from_bits((power + 127 - S - 1) << 23);
            let level = if power == 0 { 0.0 } else { level };
            norm * f32::from_bits(level.to_bits() | ((code >> 3) << 31))
        });
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}
