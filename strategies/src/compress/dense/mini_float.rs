//! Floats of a sign, E bits of exponent and M of fraction, with a power of two for every block: the
//! formats `fp16`, `fp8-e4m3` and `fp8-e5m2`. `bf16` has the range of f32, and `fp4-e3m0` has no
//! fraction, so they have formats of their own.

use super::format::{BLOCK_MAX, Blocks, Format};
use crate::compress::header::Header;
use crate::compress::lanes::largest;
use crate::compress::random::Random;
use crate::compress::{Codec, CodecError, CodecProperties};

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
pub(in crate::compress) struct MiniFloat<const E: u32, const M: u32> {
    pub(in crate::compress) name: &'static str,
    pub(in crate::compress) tag: u8,
    /// Binary exponent of the block's largest magnitude after scaling.
    pub(in crate::compress) top: u32,
}

impl<const E: u32, const M: u32> MiniFloat<E, M> {
    const BIAS: u32 = (1 << (E - 1)) - 1;
    const BYTES: usize = ((1 + E + M) / 8) as usize;
    const SIGN: u32 = 1 << (E + M);
    /// Bits of fraction that f32 has more.
    const DROPPED: u32 = 23 - M;

    /// The largest code that is written, without its sign.
    const fn most(&self) -> u32 {
        ((self.top + 1 + Self::BIAS) << M) - 1
    }

    #[inline(always)]
    fn code(&self, value: f32) -> u32 {
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
        sign | code.min(self.most())
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

    /// The least k that is written: of the largest f32.
    const fn least_shift(&self) -> i8 {
        (self.top as i32 - 127) as i8
    }
}

/// `2^power`, for a normal result.
#[inline(always)]
fn power_of_two(power: i32) -> f32 {
    f32::from_bits(((127 + power) as u32) << 23)
}

impl<const E: u32, const M: u32> Format for MiniFloat<E, M> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn properties(&self) -> CodecProperties {
        let of_normals = 0.25f64.powi(M as i32 + 1);
        let of_subnormals = 0.25f64.powi((Self::BIAS + M + self.top) as i32);
        CodecProperties::rounding(of_normals + BLOCK_MAX as f64 * of_subnormals)
    }

    fn header(&self) -> Header {
        Header::new(self.tag)
    }

    fn block(&self) -> usize {
        BLOCK_MAX
    }

    fn block_bytes(&self, len: usize) -> usize {
        1 + Self::BYTES * len
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let exponent = (largest(values).to_bits() >> 23) as i32 - 127;
        let shift = (self.top as i32 - exponent).clamp(self.least_shift().into(), 126);
        let scale = power_of_two(shift);
        let (head, bytes) = bytes.split_at_mut(1);
        head[0] = shift as u8;
        if Self::BYTES == 1 {
            for (byte, value) in bytes.iter_mut().zip(values) {
                *byte = self.code(value * scale) as u8;
            }
        } else {
            for (two, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                *two = (self.code(value * scale) as u16).to_le_bytes();
            }
        }
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], _: usize) -> Result<(), CodecError> {
        let (head, bytes) = bytes.split_at(1);
        if !(self.least_shift()..=126).contains(&(head[0] as i8)) {
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
        match largest > self.most() {
            true => Err(CodecError::OutOfRange { field: "values" }),
            false => Ok(()),
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

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Blocks(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_round_like_the_half_crate() {
        let half = MiniFloat::<5, 10> {
            name: "",
            tag: 0,
            top: 14,
        };
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Exponents from below the least subnormal to the largest that is written.
            let value = f32::from_bits((bits & 0x807f_ffff) | ((100 + (bits >> 8) % 41) << 23));
            let reference = half::f16::from_f32(value);
            if value.abs() < 32_752.0 {
                assert_eq!(
                    half.code(value),
                    u32::from(reference.to_bits()),
                    "{value:e}"
                );
            }
        }
        for code in 0..=half.most() {
            let reference = half::f16::from_bits(code as u16).to_f32();
            assert_eq!(MiniFloat::<5, 10>::value(code), reference);
        }
    }

    #[test]
    fn every_code_is_its_own_nearest() {
        let e4m3 = MiniFloat::<4, 3> {
            name: "",
            tag: 0,
            top: 7,
        };
        for code in 0..=e4m3.most() {
            let value = MiniFloat::<4, 3>::value(code);
            assert_eq!(e4m3.code(value), code, "{value}");
            assert_eq!(e4m3.code(-value), code | 0x80);
        }
        // OCP's table: the least subnormal, the least normal, and 240.
        assert_eq!(MiniFloat::<4, 3>::value(1), 2f32.powi(-9));
        assert_eq!(MiniFloat::<4, 3>::value(8), 2f32.powi(-6));
        assert_eq!(MiniFloat::<4, 3>::value(0x77), 240.0);
    }
}
