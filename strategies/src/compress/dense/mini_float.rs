//! Codecs `fp16`, `fp8-e4m3` and `fp8-e5m2`: floats of a sign, E bits of exponent and M of fraction, with
//! a power of two for every block. `bf16` has the range of f32, and `fp4-e3m0` has no fraction, so they
//! have formats of their own.

use super::format::{BLOCK_MAX, Blocks, Format};
use crate::compress::random::Random;
use crate::compress::simd::largest;
use crate::compress::{CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const FP16_SPEC: CodecSpec = CodecSpec {
    name: "fp16",
    tag: 10,
    summary: "half floats, a power of two for each 4096 values: 2 bytes",
    equation: "C(x) = 2^e half(x / 2^e), e of the block's largest",
    source: "Micikevicius et al., ICLR 2018 (section 3.2); OpenDiLoCo, arXiv 2407.07852",
    parameters: &[],
    build: |_| Box::new(Blocks(FP16)),
};

pub(in crate::compress) const E4M3_SPEC: CodecSpec = CodecSpec {
    name: "fp8-e4m3",
    tag: 11,
    summary: "floats with 3 bits of fraction, a power of two for each 4096 values: 1 byte",
    equation: "C(x) = 2^e E4M3(x / 2^e), e of the block's largest",
    source: "Micikevicius et al., arXiv 2209.05433",
    parameters: &[],
    build: |_| Box::new(Blocks(E4M3)),
};

pub(in crate::compress) const E5M2_SPEC: CodecSpec = CodecSpec {
    name: "fp8-e5m2",
    tag: 12,
    summary: "floats with 2 bits of fraction, a power of two for each 4096 values: 1 byte",
    equation: "C(x) = 2^e E5M2(x / 2^e), e of the block's largest",
    source: "Micikevicius et al., arXiv 2209.05433",
    parameters: &[],
    build: |_| Box::new(Blocks(E5M2)),
};

/// IEEE binary16; [`MiniFloat`] has the equation and the layout.
///
/// `||C(x) - x||^2 <= 2^-22 ||x||^2`, and a little more for values that are more than 2^28 below
/// the largest of their block. 16 bits for each value. Works for deltas, gradients and parameters.
///
/// Source: Micikevicius et al., "Mixed precision training" (ICLR 2018): the scale is that of
/// section 3.2, chosen for each block. OpenDiLoCo (arXiv 2407.07852) uses it for pseudo-gradients.
const FP16: MiniFloat<5, 10> = MiniFloat;

/// Floats with 3 bits of fraction: `||C(x) - x||^2 <= 2^-8 ||x||^2`. [`MiniFloat`] has the equation
/// and the layout.
///
/// 8 bits for each value. Values more than 2^13 below the largest of their block lose bits.
///
/// Source: Micikevicius et al., "FP8 formats for deep learning" (arXiv 2209.05433), table 1;
/// scaling as in section 3.
const E4M3: MiniFloat<4, 3> = MiniFloat;

/// Floats with 2 bits of fraction: `||C(x) - x||^2 <= 2^-6 ||x||^2`, with full precision down to
/// 2^28 below the largest of the block. Otherwise as [`E4M3`].
const E5M2: MiniFloat<5, 2> = MiniFloat;

/// Rounds to the nearest small float, ties to even.
///
/// ```text
/// k    = TOP - floor(log2 max |x|) over a block of 4096, at most 126
/// C(x) = 2^-k fl(2^k x)
/// ```
///
/// Scaling by a power of two rounds nothing. It moves the largest magnitude of the block into
/// [2^TOP, 2^(TOP + 1)), so that small deltas do not vanish below the least subnormal. With M bits
/// of fraction the relative error of a value is at most 2^-(M+1). Values more than 2^(TOP + bias -
/// 1) below the largest have an error of at most half a subnormal.
///
/// Layout of a block: k (i8), then each value in 1 or 2 bytes. A value that would round up to
/// 2^(TOP + 1) becomes the largest float below, so that the very largest f32 stay finite.
#[derive(Clone, Copy, Debug)]
struct MiniFloat<const E: u32, const M: u32>;

impl<const E: u32, const M: u32> MiniFloat<E, M> {
    const BIAS: u32 = (1 << (E - 1)) - 1;
    const BYTES: usize = ((1 + E + M) / 8) as usize;
    const SIGN: u32 = 1 << (E + M);
    /// Bits of fraction that f32 has more.
    const DROPPED: u32 = 23 - M;
    /// Binary exponent of the block's largest magnitude after scaling.
    const TOP: u32 = if E == 4 { 7 } else { 14 };
    /// The largest code that is written, without its sign.
    const MOST: u32 = ((Self::TOP + 1 + Self::BIAS) << M) - 1;
    /// The least k that is written: of the largest f32.
    const LEAST_SHIFT: i8 = (Self::TOP as i32 - 127) as i8;

    #[inline(always)]
    fn code(value: f32) -> u32 {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let half = (1 << (Self::DROPPED - 1)) - 1;
        let rounded = magnitude + half + ((magnitude >> Self::DROPPED) & 1);
        let normal = (rounded >> Self::DROPPED).wrapping_sub((127 - Self::BIAS) << M);
        // Adding a float whose last place is the least subnormal rounds to multiples of it.
        let ruler = (127 + 1 - Self::BIAS + Self::DROPPED) << 23;
        let sum = f32::from_bits(magnitude) + f32::from_bits(ruler);
        let subnormal = sum.to_bits().wrapping_sub(ruler);
        let least_normal = (127 + 1 - Self::BIAS) << 23;
        let code = if magnitude < least_normal {
            subnormal
        } else {
            normal
        };
        let sign = (bits >> 31) << (E + M);
        sign | code.min(Self::MOST)
    }

    #[inline(always)]
    fn value(code: u32) -> f32 {
        let magnitude = code & (Self::SIGN - 1);
        let normal = f32::from_bits((magnitude << Self::DROPPED) + ((127 - Self::BIAS) << 23));
        let least = f32::from_bits((127 + 1 - Self::BIAS - M) << 23);
        let subnormal = magnitude as i32 as f32 * least;
        let value = if magnitude < 1 << M {
            subnormal
        } else {
            normal
        };
        f32::from_bits(value.to_bits() | ((code & Self::SIGN) << (31 - E - M)))
    }
}

/// `2^power`, for a normal result.
#[inline(always)]
fn power_of_two(power: i32) -> f32 {
    f32::from_bits(((127 + power) as u32) << 23)
}

impl<const E: u32, const M: u32> Format for MiniFloat<E, M> {
    const SPEC: &'static CodecSpec = match (E, M) {
        (5, 10) => &FP16_SPEC,
        (4, _) => &E4M3_SPEC,
        _ => &E5M2_SPEC,
    };

    fn properties(&self) -> CodecProperties {
        let of_normals = 0.25f64.powi(M as i32 + 1);
        let of_subnormals = 0.25f64.powi((Self::BIAS + M + Self::TOP) as i32);
        CodecProperties::rounding(of_normals + BLOCK_MAX as f64 * of_subnormals)
    }

    fn block_bytes(&self, len: usize) -> usize {
        1 + Self::BYTES * len
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let exponent = (largest(values).to_bits() >> 23) as i32 - 127;
        let shift = (Self::TOP as i32 - exponent).clamp(Self::LEAST_SHIFT.into(), 126);
        let scale = power_of_two(shift);
        let (head, bytes) = bytes.split_at_mut(1);
        head[0] = shift as u8;
        if Self::BYTES == 1 {
            for (byte, value) in bytes.iter_mut().zip(values) {
                *byte = Self::code(value * scale) as u8;
            }
        } else {
            for (two, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                *two = (Self::code(value * scale) as u16).to_le_bytes();
            }
        }
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], _: usize) -> Result<(), CodecError> {
        let (head, bytes) = bytes.split_at(1);
        if !(Self::LEAST_SHIFT..=126).contains(&(head[0] as i8)) {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        let largest = if Self::BYTES == 1 {
            let mask = (Self::SIGN - 1) as u8;
            u32::from(bytes.iter().fold(0, |most, b| (b & mask).max(most)))
        } else {
            let mask = (Self::SIGN - 1) as u16;
            let twos = bytes.as_chunks::<2>().0.iter();
            u32::from(twos.fold(0, |most, b| (u16::from_le_bytes(*b) & mask).max(most)))
        };
        if largest > Self::MOST {
            Err(CodecError::OutOfRange { field: "values" })
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (head, bytes) = bytes.split_at(1);
        let scale = power_of_two(-i32::from(head[0] as i8));
        if Self::BYTES == 1 {
            for (a, byte) in acc.iter_mut().zip(bytes) {
                *a += weight * (scale * Self::value(u32::from(*byte)));
            }
        } else {
            for (a, two) in acc.iter_mut().zip(bytes.as_chunks::<2>().0) {
                let code = u32::from(u16::from_le_bytes(*two));
                *a += weight * (scale * Self::value(code));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_round_like_the_half_crate() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Exponents from below the least subnormal to the largest that is written.
            let value = f32::from_bits((bits & 0x807f_ffff) | ((100 + (bits >> 8) % 41) << 23));
            let reference = half::f16::from_f32(value);
            if value.abs() < 32_752.0 {
                assert_eq!(
                    MiniFloat::<5, 10>::code(value),
                    u32::from(reference.to_bits()),
                    "{value:e}"
                );
            }
        }
        for code in 0..=MiniFloat::<5, 10>::MOST {
            let reference = half::f16::from_bits(code as u16).to_f32();
            assert_eq!(MiniFloat::<5, 10>::value(code), reference);
        }
    }

    #[test]
    fn every_code_is_its_own_nearest() {
        for code in 0..=MiniFloat::<4, 3>::MOST {
            let value = MiniFloat::<4, 3>::value(code);
            assert_eq!(MiniFloat::<4, 3>::code(value), code, "{value}");
            assert_eq!(MiniFloat::<4, 3>::code(-value), code | 0x80);
        }
        // OCP's table: the least subnormal, the least normal, and 240.
        assert_eq!(MiniFloat::<4, 3>::value(1), 2f32.powi(-9));
        assert_eq!(MiniFloat::<4, 3>::value(8), 2f32.powi(-6));
        assert_eq!(MiniFloat::<4, 3>::value(0x77), 240.0);
    }
}
