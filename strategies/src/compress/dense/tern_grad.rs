//! Codec `tern-grad`: -1, 0 and 1 of a block's largest magnitude, at random; five to a byte.

use super::format::{Blocks, Format, check_scale, first_f32, inverse, put_f32};
use super::int::int8;
use crate::compress::random::Random;
use crate::compress::simd::largest;
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "tern-grad",
    tag: 16,
    summary: "-1, 0 or 1 of the largest of 1280 values, at random: 1.6 bits",
    equation: "C(x) = s sgn(x) b, b = 1 with probability |x| / s, else 0; s = max |x| of the block",
    source: "Wen et al., NeurIPS 2017",
    parameters: &[],
    build: |_| Box::new(Blocks(TernGrad)),
};

/// Values that share a scale: five planes of 256.
const BLOCK: usize = 1280;

/// Ternary gradients: each value becomes -s, 0 or s.
///
/// ```text
/// s    = max |x| over a block of 1280
/// b    = 1 with probability |x| / s, else 0
/// C(x) = s sgn(x) b                                    E C(x) = x
/// ```
///
/// `E||C(x) - x||^2 = s ||x||_1 - ||x||_2^2 <= (sqrt(1280) - 1) ||x||^2`: error feedback is neither
/// needed nor allowed. 1.6 bits for each value (log2 3 = 1.585) and 0.025 for the scale. It is
/// meant for gradients. Contributions are sent relative to the anchor; reductions return as `int8`.
///
/// Layout of a block: s (f32), trits in five planes: byte j holds trits j, j + n, .. j + 4 n as
/// digits of base 3, lowest first (0 zero, 1 plus, 2 minus). Blocks whose s is below the smallest
/// normal f32 become zero.
///
/// Source: Wen et al., "TernGrad" (NeurIPS 2017), equations 2 and 3, with blocks instead of layers.
/// Its clipping at 2.5 deviations (section 4) is left out: clipping is biased, and with this
/// variance error feedback cannot correct it.
#[derive(Clone, Copy, Debug)]
struct TernGrad;

const PLANES: usize = 5;
const DIGITS: [u8; PLANES] = [1, 3, 9, 27, 81];

/// The place of a plane among `len` values in `stride` bytes.
#[inline(always)]
fn plane_range(plane: usize, stride: usize, len: usize) -> core::ops::Range<usize> {
    (plane * stride).min(len)..((plane + 1) * stride).min(len)
}

impl Format for TernGrad {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties::random((BLOCK as f64).sqrt() - 1.0)
    }

    fn block(&self) -> usize {
        BLOCK
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 + len.div_ceil(PLANES)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        let most = largest(values);
        let scale = if most < f32::MIN_POSITIVE { 0.0 } else { most };
        let per_scale = inverse(scale);
        let bytes = put_f32(scale, bytes);
        bytes.fill(0);
        for (plane, digit) in DIGITS.into_iter().enumerate() {
            let range = plane_range(plane, bytes.len(), values.len());
            let indices = range.start as u32..;
            for (index, (byte, value)) in indices.zip(bytes.iter_mut().zip(&values[range])) {
                let kept = random.unit(index) < value.abs() * per_scale;
                let trit = 1 + (value.to_bits() >> 31);
                let digits = if kept { trit * u32::from(digit) } else { 0 };
                *byte += digits as u8;
            }
        }
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (scale, bytes) = first_f32(bytes);
        check_scale(scale, 1.0)?;
        let mut bad = bytes.iter().fold(false, |seen, byte| seen | (*byte > 242));
        for (plane, digit) in DIGITS.into_iter().enumerate() {
            let used = plane_range(plane, bytes.len(), len).len();
            bad |= bytes[used..].iter().any(|byte| byte / digit % 3 != 0);
        }
        if bad {
            Err(CodecError::OutOfRange { field: "values" })
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (scale, bytes) = first_f32(bytes);
        let (stride, len) = (bytes.len(), acc.len());
        for plane in 0..PLANES {
            let run = &mut acc[plane_range(plane, stride, len)];
            let digit = u32::from(DIGITS[plane]);
            // Multiplying by 2^16 / digit, rounded up, and dropping 16 bits is dividing a byte by it.
            let (per_digit, third) = (65_536 / digit + 1, 65_536 / 3 + 1);
            for (a, byte) in run.iter_mut().zip(bytes) {
                let rest = (u32::from(*byte) * per_digit) >> 16;
                let trit = rest - 3 * ((rest * third) >> 16);
                let sign = ((trit & 1) as i32 - (trit >> 1) as i32) as f32;
                *a += weight * (scale * sign);
            }
        }
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplying_divides_every_byte_by_every_digit() {
        for digit in DIGITS.into_iter().chain([3]).map(u32::from) {
            for byte in 0..256 {
                assert_eq!((byte * (65_536 / digit + 1)) >> 16, byte / digit);
            }
        }
    }
}
