//! Codec `natural`: a sign and a power of two, rounded at random.

use super::format::{Blocks, Format};
use super::planar;
use crate::compress::random::Random;
use crate::compress::{CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "natural",
    tag: 17,
    summary: "a sign and a power of two, rounded at random: 9 bits",
    equation: "C(x) = sgn(x) 2^(a + 1) with probability |x| / 2^a - 1, else sgn(x) 2^a, a = floor(log2 |x|)",
    source: "Horvath et al., MSML 2022 (arXiv 1905.10988)",
    parameters: &[],
    build: |_| Box::new(Blocks(Natural)),
};

/// Natural compression: rounds each value at random to one of the two powers of two around it. It
/// needs no scale, no norm and no multiplication.
///
/// ```text
/// a    = floor(log2 |x|)
/// C(x) = sgn(x) 2^(a + 1) with probability |x| / 2^a - 1, else sgn(x) 2^a      E C(x) = x
/// ```
///
/// `E||C(x) - x||^2 <= 1/8 ||x||^2` (theorem 1): contractive, so error feedback is allowed. 9 bits
/// for each value. Works for deltas and gradients. Reductions are encoded in the same way once
/// more.
///
/// Layout of a block of 4096: the exponents as in f32 (a byte each, 0 for zero), then the signs in
/// planes of a bit. Subnormals become zero or 2^-126, without bias; above 2^127 the power is 2^127.
///
/// Source: Horvath et al., "Natural compression for distributed deep learning" (arXiv 1905.10988),
/// definition 1; 9 bits: section 3.
#[derive(Clone, Copy, Debug)]
struct Natural;

impl Format for Natural {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties {
            dense: false,
            ..CodecProperties::random(0.125)
        }
    }

    fn block_bytes(&self, len: usize) -> usize {
        len + planar::bytes_for(len, 1)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        let (powers, signs) = bytes.split_at_mut(values.len());
        for (index, (byte, value)) in (0u32..).zip(powers.iter_mut().zip(values)) {
            // The fraction is the probability of the power above: a random one carries into the exponent.
            let magnitude = value.to_bits() & 0x7fff_ffff;
            let power = (magnitude + (random.bits(index) >> 9)) >> 23;
            *byte = power.min(254) as u8;
        }
        planar::write(values, 1, signs, |_, value| value.to_bits() >> 31);
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (powers, signs) = bytes.split_at(len);
        if powers.iter().fold(false, |seen, p| seen | (*p == 255)) {
            return Err(CodecError::NotFinite { field: "values" });
        }
        planar::check(signs, 1, len, 1)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (powers, signs) = bytes.split_at(acc.len());
        let stride = signs.len();
        for (plane, (acc, powers)) in acc
            .chunks_mut(stride.max(1))
            .zip(powers.chunks(stride.max(1)))
            .enumerate()
        {
            for ((a, power), sign) in acc.iter_mut().zip(powers).zip(signs) {
                let sign = (u32::from(*sign) >> plane & 1) << 31;
                *a += weight * f32::from_bits((u32::from(*power) << 23) | sign);
            }
        }
    }
}
