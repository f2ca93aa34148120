//! Codec `qsgd`: s levels of a bucket's 2-norm, rounded at random.

use super::format::{Blocks, Format, check_scale, first_f32, inverse, put_f32};
use super::int::int8;
use super::planar;
use crate::compress::random::Random;
use crate::compress::raw::Header;
use crate::compress::simd::{sum_of_squares, to_finite};
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "qsgd",
    tag: 14,
    summary: "levels of a bucket's 2-norm, rounded at random: 2, 4 or 8 bits",
    equation: "C(x) = ||x|| sgn(x) xi / s, xi = floor(s |x| / ||x||) or one more, E C(x) = x",
    source: "Alistarh et al., NeurIPS 2017",
    parameters: &[LEVELS, BUCKET],
    build: |kind| {
        Box::new(Blocks(Qsgd {
            levels: kind.count("levels") as u8,
            bucket: kind.count("bucket"),
        }))
    },
};

const LEVELS: Parameter = Parameter {
    name: "levels",
    range: Range::Whole(1, 127),
    default: Some(7.0),
    about: "the number of levels above zero, such as 7 (4 bits a value)",
};

/// Values that share a norm.
pub(in crate::compress) const BUCKET: Parameter = Parameter {
    name: "bucket",
    range: Range::PowerOfTwo(64, 4096),
    default: Some(512.0),
    about: "the number of values that share a norm, such as 512",
};

/// Stochastic uniform quantization with s levels over buckets of d values.
///
/// ```text
/// r     = s |x| / ||x||_2
/// xi    = floor(r) + 1 with probability r - floor(r), else floor(r)
/// Q_s(x) = ||x||_2 sgn(x) xi / s                       E Q_s(x) = x
/// ```
///
/// `E||Q_s(x) - x||^2 <= min(d / s^2, sqrt(d) / s) ||x||^2` (lemma 3.1). For d = 512 and the
/// default s = 7 that is 3.2, so error feedback is neither needed nor allowed; for s = 127 it is
/// 0.032.
///
/// Codes have a fixed width instead of the paper's Elias code: 2 bits for s = 1, 4 up to 7, 8 up to
/// 127, and 32 / d for the norm. Contributions are sent relative to the anchor; reductions return
/// as `int8`.
///
/// Layout of a block: the norm (f32), sgn(x) xi + s in planes. Buckets whose level is below the
/// smallest normal f32 become zero; a norm beyond f32 becomes the largest f32.
///
/// Source: Alistarh et al., "QSGD" (NeurIPS 2017), section 3.1; buckets: section 4.
#[derive(Clone, Copy, Debug)]
struct Qsgd {
    levels: u8,
    bucket: usize,
}

impl Qsgd {
    const fn bits(&self) -> u32 {
        match self.levels {
            0..=1 => 2,
            2..=7 => 4,
            _ => 8,
        }
    }
}

impl Format for Qsgd {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        let (d, s) = (self.bucket as f64, f64::from(self.levels));
        CodecProperties {
            dense: false,
            ..CodecProperties::random((d / (s * s)).min(d.sqrt() / s))
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        let bucket = (self.bucket as u16).to_le_bytes();
        opening.with([self.levels]).with(bucket)
    }

    fn block(&self) -> usize {
        self.bucket
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 + planar::bytes_for(len, self.bits())
    }

    #[inline(always)]
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        let levels = f32::from(self.levels);
        // A millionth below the largest f32: levels times a level rounds.
        let limit = f64::from(f32::MAX) * 0.999_999;
        let norm = to_finite(sum_of_squares(values).sqrt().min(limit));
        let norm = if norm / levels < f32::MIN_POSITIVE {
            0.0
        } else {
            norm
        };
        let per_level = inverse(norm / levels);
        let codes = put_f32(norm, bytes);
        planar::write(values, self.bits(), codes, |index, value| {
            let level = stochastic_level(value * per_level, levels, random.unit(index));
            level.wrapping_add(self.levels.into()) & 0xff
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (norm, codes) = first_f32(bytes);
        check_scale(norm, 1.0)?;
        let levels = f32::from(self.levels);
        if !(norm / levels * levels).is_finite() {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        planar::check(codes, self.bits(), len, 2 * self.levels)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (norm, codes) = first_f32(bytes);
        let levels = f32::from(self.levels);
        let level = norm / levels;
        planar::add(codes, self.bits(), weight, acc, |code| {
            level * (code as i32 as f32 - levels)
        });
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}

/// `sgn(value) floor(|value| + uniform)` as the low bits of an integer, at most `levels`.
#[inline(always)]
fn stochastic_level(value: f32, levels: f32, uniform: f32) -> u32 {
    // Rounding half below is rounding down, but where both terms are exact.
    let raised = value.abs() + (uniform - 0.5);
    let raised = if raised < levels { raised } else { levels };
    super::format::round_to_bits(raised.copysign(value))
}
