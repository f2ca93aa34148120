//! Codec `rotated`: a random rotation, then levels between least and largest, rounded at random.

use super::format::{Blocks, Format, first_f32, inverse, put_f32, round_to_bits};
use super::hadamard::{rotate, rotate_back};
use super::int::int8;
use super::planar;
use crate::compress::random::Random;
use crate::compress::raw::Header;
use crate::compress::simd::bounds;
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "rotated",
    tag: 22,
    summary: "a random rotation of each 1024 values, then levels rounded at random",
    equation: "C(x) = R^-1 Q(R x), R = H D / sqrt(d) a random rotation, Q stochastic levels",
    source: "Suresh et al., ICML 2017",
    parameters: &[BITS],
    build: |kind| Box::new(Blocks(Rotated(kind.count("bits") as u32))),
};

const BITS: Parameter = Parameter {
    name: "bits",
    range: Range::PowerOfTwo(1, 8),
    default: Some(4.0),
    about: "the bits of a value: 1, 2, 4 or 8",
};

/// Values that are rotated together.
pub(in crate::compress) const BLOCK: usize = 1024;

/// Stochastic rotated quantization with k = 2^bits levels over blocks of d = 1024.
///
/// ```text
/// z    = H D x / sqrt(d)                     D: random signs, H: Hadamard's matrix
/// l, s = min z, (max z - min z) / (k - 1)
/// q    = floor((z - l) / s + u),  u uniform in [0, 1)
/// C(x) = D H (l + s q) / sqrt(d)             E C(x) = x
/// ```
///
/// `E||C(x) - x||^2 <= (2 ln d + 2) / (k - 1)^2 ||x||^2` (theorem 3): 0.071 for 4 bits, 16 for one.
/// It is meant for vectors with a few large values, which the rotation spreads. bits + 0.094 bits
/// for each value. Contributions are sent relative to the anchor; reductions return as `int8`.
///
/// Layout of a block: the seed of the rotation (u32), l, s (f32), q in planes. The last block is
/// padded with zeros to a power of two. If the rotated values are equal, or the step is below the
/// smallest normal f32, all of them become l. Values whose rotation overflows f32 are clipped.
///
/// Source: Suresh et al., "Distributed mean estimation with limited communication" (ICML 2017),
/// section 3.
#[derive(Clone, Copy, Debug)]
struct Rotated(u32);

impl Rotated {
    fn levels(&self) -> f32 {
        ((1u32 << self.0) - 1) as f32
    }
}

#[inline(always)]
pub(in crate::compress) fn rotation_seed(random: Random) -> u32 {
    // An index that no value of a block has.
    random.bits(u32::MAX)
}

/// A block padded to a power of two.
#[inline(always)]
pub(in crate::compress) fn padded(values: &[f32], buffer: &mut [f32; BLOCK]) -> usize {
    let len = values.len().next_power_of_two();
    buffer[..values.len()].copy_from_slice(values);
    buffer[values.len()..len].fill(0.0);
    len
}

impl Format for Rotated {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        let k = f64::from(self.levels());
        CodecProperties {
            dense: false,
            ..CodecProperties::random((2.0 * (BLOCK as f64).ln() + 2.0) / (k * k))
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with([self.0 as u8])
    }

    fn block(&self) -> usize {
        BLOCK
    }

    fn block_bytes(&self, len: usize) -> usize {
        12 + planar::bytes_for(len.next_power_of_two(), self.0)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        let mut buffer = [0.0; BLOCK];
        let len = padded(values, &mut buffer);
        let turned = &mut buffer[..len];
        let seed = rotation_seed(random);
        rotate(turned, seed);
        let (low, high) = bounds(turned);
        // A quarter of f32's range: rotating back may add what was spread.
        let limit = f32::MAX / 4.0 / BLOCK as f32;
        let (low, high) = (low.clamp(-limit, limit), high.clamp(-limit, limit));
        let levels = self.levels();
        let step = (high - low) / levels;
        let step = if step < f32::MIN_POSITIVE { 0.0 } else { step };
        let per_step = inverse(step);
        let (head, rest) = bytes.split_at_mut(4);
        head.copy_from_slice(&seed.to_le_bytes());
        let codes = put_f32(step, put_f32(low, rest));
        planar::write(turned, self.0, codes, |index, value| {
            let level = (value - low) * per_step + (random.unit(index) - 0.5);
            let level = if level < levels { level } else { levels };
            round_to_bits(if level > 0.0 { level } else { 0.0 }) & 0xff
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (low, rest) = first_f32(&bytes[4..]);
        let (step, codes) = first_f32(rest);
        if !(low.is_finite() && step.is_finite()) {
            return Err(CodecError::NotFinite { field: "scale" });
        }
        let limit = f32::MAX / 2.0 / BLOCK as f32;
        let zero = step.to_bits() == 0;
        if (!zero && step < f32::MIN_POSITIVE) || step * self.levels() > limit || low.abs() > limit
        {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        let most = ((1u32 << self.0) - 1) as u8;
        planar::check(codes, self.0, len.next_power_of_two(), most)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (seed, rest) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
        let (low, rest) = first_f32(rest);
        let (step, codes) = first_f32(rest);
        let mut buffer = [0.0; BLOCK];
        let turned = &mut buffer[..acc.len().next_power_of_two()];
        planar::add(codes, self.0, 1.0, turned, |code| {
            low + step * code as i32 as f32
        });
        rotate_back(turned, u32::from_le_bytes(*seed));
        for (a, value) in acc.iter_mut().zip(turned) {
            *a += weight * *value;
        }
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}
