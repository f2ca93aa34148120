//! Codecs `sign-sgd` and `ef-sign`: signs, alone or with the mean magnitude. Signum (signs of a
//! momentum) is an inner optimizer whose gradients are sent by `sign-sgd`, not a codec.

use super::format::{BLOCK_MAX, Blocks, Format, first_f32, put_f32};
use super::int::int8;
use super::planar;
use crate::compress::random::Random;
use crate::compress::simd::{sum_of_magnitudes, to_finite};
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const SIGN_SGD_SPEC: CodecSpec = CodecSpec {
    name: "sign-sgd",
    tag: 20,
    summary: "signs alone, reduced by majority vote: 1 bit both ways",
    equation: "C(x) = sgn(x), the reduction: the majority's sign",
    source: "Bernstein et al., ICML 2018; majority vote: ICLR 2019",
    parameters: &[],
    build: |_| Box::new(Blocks(SignSgd)),
};

pub(in crate::compress) const EF_SIGN_SPEC: CodecSpec = CodecSpec {
    name: "ef-sign",
    tag: 21,
    summary: "signs and the mean magnitude of each 4096 values: 1 bit",
    equation: "C(x) = (||x||_1 / d) sgn(x), blocks of d values",
    source: "Karimireddy et al., ICML 2019",
    parameters: &[],
    build: |_| Box::new(Blocks(EfSign)),
};

/// The sign bit of a value; 1 for negative zero.
#[inline(always)]
fn sign_of(_: u32, value: f32) -> u32 {
    value.to_bits() >> 31
}

/// `magnitude` with the sign of a code.
#[inline(always)]
pub(in crate::compress) fn signed(magnitude: f32, code: u32) -> f32 {
    f32::from_bits(magnitude.to_bits() ^ (code << 31))
}

/// Signs alone; the reduction is a majority vote.
///
/// ```text
/// C(x) = sgn(x),  the reduction: C(mean of C(x_i)) = the majority's sign
/// ```
///
/// Biased, without a bound of the error. It converges by itself with a suitable learning rate
/// (theorem 1). It needs gradients, because the sign of a delta does not say how far to go. 1 bit
/// for each value in both directions. Votes have the weights that the exchange gives to
/// contributions.
///
/// Layout of a block of 4096: sign bits in planes. The sign of a zero, and that of a tie, is drawn
/// at random. A bit has no third value, and a fixed sign for zero would move every value without a
/// gradient (such as that of a pixel that is never lit) in one direction for ever.
///
/// Source: Bernstein et al., "signSGD: compressed optimisation for non-convex problems" (ICML
/// 2018), algorithm 1; vote: "signSGD with majority vote is communication efficient and fault
/// tolerant" (ICLR 2019), algorithm 1.
#[derive(Clone, Copy, Debug)]
struct SignSgd;

impl Format for SignSgd {
    const SPEC: &'static CodecSpec = &SIGN_SGD_SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties {
            needs_feedback: false,
            scaled: false,
            stochastic: true,
            ..CodecProperties::biased(f64::INFINITY)
        }
    }

    fn block_bytes(&self, len: usize) -> usize {
        planar::bytes_for(len, 1)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        // Most blocks have no zero, and numbers cost more than signs.
        if values.iter().filter(|v| **v == 0.0).count() == 0 {
            planar::write(values, 1, bytes, sign_of);
            return;
        }
        planar::write(values, 1, bytes, |index, value| {
            if value == 0.0 {
                random.bits(index) >> 31
            } else {
                sign_of(index, value)
            }
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        planar::check(bytes, 1, len, 1)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        planar::add(bytes, 1, weight, acc, |code| signed(1.0, code));
    }
}

/// Signs times the mean magnitude of a block, for error feedback.
///
/// ```text
/// C(x) = (||x||_1 / d) sgn(x) over blocks of d = 4096
/// ```
///
/// `||C(x) - x||^2 = (1 - ||x||_1^2 / (d ||x||_2^2)) ||x||^2 <= (1 - 1/d) ||x||^2` (lemma 8); for a
/// normal distribution 1 - 2/pi. 1.008 bits for each value. Contributions are sent relative to the
/// anchor. Reductions return as `int8`, so that no second residual is needed.
///
/// Layout of a block: the mean magnitude (f32), sign bits in planes.
///
/// Source: Karimireddy et al., "Error feedback fixes SignSGD and other gradient compression
/// schemes" (ICML 2019), algorithm 1, with blocks instead of layers.
#[derive(Clone, Copy, Debug)]
struct EfSign;

impl Format for EfSign {
    const SPEC: &'static CodecSpec = &EF_SIGN_SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0 - 1.0 / BLOCK_MAX as f64)
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 + planar::bytes_for(len, 1)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let mean = to_finite(sum_of_magnitudes(values) / values.len() as f64);
        planar::write(values, 1, put_f32(mean, bytes), sign_of);
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (mean, signs) = first_f32(bytes);
        if !mean.is_finite() {
            return Err(CodecError::NotFinite { field: "scale" });
        }
        if mean.is_sign_negative() {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        planar::check(signs, 1, len, 1)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (mean, signs) = first_f32(bytes);
        planar::add(signs, 1, weight, acc, |code| signed(mean, code));
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}
