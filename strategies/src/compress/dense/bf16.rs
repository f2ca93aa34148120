//! Codec `bf16`: the upper half of an f32, rounded. Half the bytes, and the range of an f32.

use super::format::{Blocks, Format};
use crate::compress::random::Random;
use crate::compress::{CodecError, CodecProperties, CodecSpec};

pub(crate) const SPEC: CodecSpec = CodecSpec {
    name: "bf16",
    tag: 2,
    summary: "rounded to half: 2 bytes",
    equation: "C(x) = x rounded to 8 significant bits, ties to even",
    source: "Kalamkar et al., arXiv 1905.12322",
    parameters: &[],
    build: |_| Box::new(Blocks(Bf16)),
};

/// `C(x)` is the bfloat16 nearest to x, ties to even. Values beyond the largest bfloat16 become
/// that.
///
/// The relative error of a normal value is at most 2^-8, hence `||C(x) - x||^2 <= 2^-16 ||x||^2`;
/// no bias over symmetric values.
///
/// Layout: the codec's byte, then 2 bytes for each value, little-endian.
///
/// Source: Kalamkar et al., "A study of BFLOAT16 for deep learning training" (arXiv 1905.12322).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::compress) struct Bf16;

/// Rounds to nearest even; finite values stay finite.
#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let sign = (bits >> 16) & 0x8000;
    // Rounding up beyond the largest value carries into a full exponent: keep the largest.
    (sign | (rounded & 0x7fff).min(0x7f7f)) as u16
}

/// The value of a bfloat16, exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

impl Format for Bf16 {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties::rounding(1.0 / 65536.0)
    }

    fn block_bytes(&self, len: usize) -> usize {
        2 * len
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        for (bytes, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
            *bytes = f32_to_bf16(*value).to_le_bytes();
        }
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], _: usize) -> Result<(), CodecError> {
        // Adding one to a full exponent carries into the sign bit, which needs no branch.
        let carried = bytes.as_chunks::<2>().0.iter().fold(0u16, |seen, b| {
            seen | ((u16::from_le_bytes(*b) & 0x7fff) + 0x0080)
        });
        match carried & 0x8000 {
            0 => Ok(()),
            _ => Err(CodecError::NotFinite { field: "values" }),
        }
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        for (a, b) in acc.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *a += weight * bf16_to_f32(u16::from_le_bytes(*b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_like_the_half_crate_and_saturates() {
        let mut bits = 0x1234_5678u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits);
            let reference = half::bf16::from_f32(value);
            if value.is_finite() && reference.is_finite() {
                assert_eq!(f32_to_bf16(value), reference.to_bits(), "{value:e}");
            }
        }
        assert_eq!(f32_to_bf16(f32::MAX), half::bf16::MAX.to_bits());
        assert_eq!(f32_to_bf16(f32::MIN), half::bf16::MIN.to_bits());
    }
}
