//! Codecs `one-bit` and `two-bit`: the values of a block are put into buckets, and each becomes the
//! mean of its bucket.

use super::format::{Blocks, Format, first_f32, put_f32};
use super::int::int8;
use super::planar;
use crate::compress::random::Random;
use crate::compress::simd::{sum_of_squares, to_finite};
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const ONE_BIT_SPEC: CodecSpec = CodecSpec {
    name: "one-bit",
    tag: 18,
    summary: "the mean of the positive and that of the negative of each 1024 values: 1 bit",
    equation: "C(x) = mean of the block's values of the same sign",
    source: "Seide et al., Interspeech 2014",
    parameters: &[],
    build: |_| Box::new(Blocks(Means::<1>)),
};

pub(in crate::compress) const TWO_BIT_SPEC: CodecSpec = CodecSpec {
    name: "two-bit",
    tag: 19,
    summary: "four means of each 1024 values, parted at zero and near a deviation: 2 bits",
    equation: "C(x) = mean of its bucket: two signs, each parted at 0.9816 of the block's root mean square",
    source: "Sarfi et al., arXiv 2508.15706; levels: Max, IRE Trans. Inf. Th. 1960",
    parameters: &[],
    build: |_| Box::new(Blocks(Means::<2>)),
};

/// Values that share their means.
const BLOCK: usize = 1024;

/// The threshold between large and small magnitudes, in units of the root mean square: the outer
/// threshold of the best four levels for a normal distribution (Max 1960, table I).
const THRESHOLD: f64 = 0.9816;

/// Each value becomes the mean of its bucket, one of 2^BITS buckets in a block of 1024.
///
/// ```text
/// one-bit:  buckets x >= 0 and x < 0                       (Seide et al.: the threshold is zero)
/// two-bit:  each of these split at |x| = 0.9816 sqrt(mean x^2)
/// C(x)   =  mean of the bucket that contains x
/// ```
///
/// C is the projection onto the vectors that are constant on each bucket, so the error is
/// orthogonal to C(x): `||C(x) - x||^2 = ||x||^2 - ||C(x)||^2 <= (1 - 1/1024) ||x||^2`. For a
/// normal distribution it is 0.363 and 0.1175 of `||x||^2`. Biased: needs error feedback.
///
/// 1.0625 and 2.125 bits for each value. Contributions are sent relative to the anchor; reductions
/// return as `int8`.
///
/// Layout of a block: the means (f32, in the order of the codes: bit 0 is the sign, bit 1 says
/// whether the magnitude is large), codes in planes. The mean of an empty bucket is zero.
///
/// Source of `one-bit`: Seide et al., "1-bit stochastic gradient descent" (Interspeech 2014),
/// section 3, with blocks instead of columns. Source of `two-bit`: the statistical quantization to
/// two bits with error feedback of SparseLoCo (Sarfi et al., arXiv 2508.15706), whose table of a
/// block contains the means of its buckets; here it is used for all values.
#[derive(Clone, Copy, Debug)]
struct Means<const BITS: u32>;

impl<const BITS: u32> Means<BITS> {
    const BUCKETS: usize = 1 << BITS;

    #[inline(always)]
    fn code(value: f32, threshold: f32) -> u32 {
        let sign = value.to_bits() >> 31;
        let large = u32::from(BITS > 1 && value.abs() >= threshold);
        sign | (large << 1)
    }

    /// One for a value of this bucket, else zero.
    #[inline(always)]
    fn is_in(bucket: usize, value: f32, threshold: f32) -> u32 {
        u32::from(Self::code(value, threshold) == bucket as u32)
    }

    /// Sum and number of the values of each bucket. In sixteen lanes of f32, each of 64 values, and
    /// then across them in f64. A pass for each bucket: its lanes stay in registers.
    #[inline(always)]
    fn buckets(&self, values: &[f32], threshold: f32) -> ([f64; 4], [u32; 4]) {
        let (mut sums, mut counts) = ([0.0; 4], [0; 4]);
        let (chunks, rest) = values.as_chunks::<16>();
        for bucket in 0..Self::BUCKETS {
            let (mut sum, mut count) = ([0.0f32; 16], [0u32; 16]);
            for chunk in chunks {
                for (sum, value) in sum.iter_mut().zip(chunk) {
                    *sum += choose(Self::is_in(bucket, *value, threshold), 0.0, *value);
                }
                for (count, value) in count.iter_mut().zip(chunk) {
                    *count += Self::is_in(bucket, *value, threshold);
                }
            }
            for ((sum, count), value) in sum.iter_mut().zip(&mut count).zip(rest) {
                let one = Self::is_in(bucket, *value, threshold);
                *sum += choose(one, 0.0, *value);
                *count += one;
            }
            sums[bucket] = sum.iter().map(|sum| f64::from(*sum)).sum();
            counts[bucket] = count.iter().sum();
        }
        (sums, counts)
    }
}

/// The first value if the lowest bit is 0, the second if it is 1. It uses masks, because a branch
/// would prevent vector instructions.
#[inline(always)]
fn choose(bit: u32, zero: f32, one: f32) -> f32 {
    let mask = 0u32.wrapping_sub(bit & 1);
    f32::from_bits((zero.to_bits() & !mask) | (one.to_bits() & mask))
}

impl<const BITS: u32> Format for Means<BITS> {
    const SPEC: &'static CodecSpec = if BITS == 1 {
        &ONE_BIT_SPEC
    } else {
        &TWO_BIT_SPEC
    };

    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0 - 1.0 / BLOCK as f64)
    }

    fn block(&self) -> usize {
        BLOCK
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 * Self::BUCKETS + planar::bytes_for(len, BITS)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let mut threshold = 0.0;
        if BITS > 1 {
            let square = sum_of_squares(values) / values.len() as f64;
            threshold = to_finite(THRESHOLD * square.sqrt());
        }
        let (sums, counts) = self.buckets(values, threshold);
        let mut rest = bytes;
        for (sum, count) in sums.iter().zip(counts).take(Self::BUCKETS) {
            rest = put_f32(to_finite(sum / f64::from(count.max(1))), rest);
        }
        planar::write(values, BITS, rest, |_, value| Self::code(value, threshold));
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let mut rest = bytes;
        for _ in 0..Self::BUCKETS {
            let (mean, after) = first_f32(rest);
            if !mean.is_finite() {
                return Err(CodecError::NotFinite { field: "scale" });
            }
            rest = after;
        }
        planar::check(rest, BITS, len, Self::BUCKETS as u8 - 1)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (plus, rest) = first_f32(bytes);
        let (minus, mut rest) = first_f32(rest);
        let (mut large_plus, mut large_minus) = (0.0, 0.0);
        if BITS > 1 {
            (large_plus, rest) = first_f32(rest);
            (large_minus, rest) = first_f32(rest);
        }
        planar::add(rest, BITS, weight, acc, |code| {
            let small = choose(code, plus, minus);
            let large = choose(code, large_plus, large_minus);
            choose(code >> 1, small, large)
        });
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}
