//! Codecs `drive` and `eden`: a random rotation, then the levels that are best for a normal distribution.

use super::format::{Blocks, Format, first_f32, put_f32};
use super::hadamard::{rotate, rotate_back};
use super::int::int8;
use super::planar;
use super::rotated::{BLOCK, padded, rotation_seed};
use super::sign::signed;
use crate::compress::random::Random;
use crate::compress::raw::Header;
use crate::compress::simd::{sum_of_squares, to_finite};
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec, Parameter, Range};

pub(in crate::compress) const DRIVE_SPEC: CodecSpec = CodecSpec {
    name: "drive",
    tag: 23,
    summary: "a random rotation of each 1024 values, then signs and a scale: 1 bit",
    equation: "C(x) = R^-1 (S sgn(R x)), S = ||R x||_1 / d",
    source: "Vargaftik et al., NeurIPS 2021",
    parameters: &[],
    build: |_| Box::new(Blocks(Eden::<1, false>)),
};

pub(in crate::compress) const EDEN_SPEC: CodecSpec = CodecSpec {
    name: "eden",
    tag: 24,
    summary: "a random rotation of each 1024 values, then 2, 4 or 16 levels and an unbiased scale",
    equation: "C(x) = R^-1 (S Q(R x)), S = ||x||^2 / <R x, Q(R x)>",
    source: "Vargaftik et al., ICML 2022",
    parameters: &[BITS],
    build: |kind| match kind.count("bits") {
        1 => Box::new(Blocks(Eden::<1, true>)),
        2 => Box::new(Blocks(Eden::<2, true>)),
        _ => Box::new(Blocks(Eden::<4, true>)),
    },
};

const BITS: Parameter = Parameter {
    name: "bits",
    range: Range::PowerOfTwo(1, 4),
    default: Some(2.0),
    about: "the bits of a value: 1, 2 or 4",
};

/// Positive levels and the thresholds between them that are best for a normal distribution (Max,
/// "Quantizing for minimum distortion", IRE Trans. Inf. Th. 1960, table I).
const LEVELS_1: [f32; 1] = [0.797_884_6];
const LEVELS_2: [f32; 2] = [0.4528, 1.510];
const LEVELS_4: [f32; 8] = [0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733];

/// Rotates each block, then replaces each value by a level and its sign. Q is the nearest level of
/// |z| in units of the root mean square of z.
///
/// ```text
/// z     = H D x / sqrt(d) over blocks of d = 1024
/// drive: S = ||z||_1 / d, C(x) = D H (S sgn(z)) / sqrt(d)           the least error
/// eden:  S = ||x||^2 / <z, Q(z)>, C(x) = D H (S Q(z)) / sqrt(d)     <C(x), x> = ||x||^2
/// ```
///
/// `drive` is biased and needs error feedback: `E||C(x) - x||^2 <= 1/2 ||x||^2` (Khintchine's
/// inequality with the constant of Szarek; 1 - 2/pi = 0.363 for large d).
///
/// `eden` is unbiased for uniform random rotations. For Hadamard's the bias is as large as the
/// rotated values are from a normal distribution: two hundredths for blocks of 1000, a tenth for
/// one of 16 (`tests/codecs/statistics.rs`). No bound of its error is published for Hadamard's
/// rotation; for large d the error is 0.571, 0.133 and 0.0096 with 1, 2 and 4 bits.
///
/// Size: bits + 0.0625 bits for each value. Contributions are sent relative to the anchor;
/// reductions return as `int8`.
///
/// Layout of a block: the seed of the rotation (u32), S (f32), codes in planes (the sign, then the
/// level). The last block is padded with zeros to a power of two. A block of zeros has S = 0.
///
/// Parameter of `eden`: `bits`, the bits of a code (1, 2 or 4).
///
/// Source: Vargaftik et al., "DRIVE: one-bit distributed mean estimation" (NeurIPS 2021), algorithm
/// 1 and section 4; "EDEN: communication-efficient and robust distributed mean estimation for
/// federated learning" (ICML 2022), section 3.
#[derive(Clone, Copy, Debug)]
struct Eden<const BITS: u32, const UNBIASED: bool>;

impl<const BITS: u32, const UNBIASED: bool> Eden<BITS, UNBIASED> {
    #[inline(always)]
    const fn levels() -> &'static [f32] {
        match BITS {
            1 => &LEVELS_1,
            2 => &LEVELS_2,
            _ => &LEVELS_4,
        }
    }

    /// The code of a value in units of the root mean square.
    #[inline(always)]
    fn code(value: f32) -> u32 {
        let levels = Self::levels();
        let magnitude = value.abs();
        let mut level = 0;
        for pair in levels.windows(2) {
            level += u32::from(magnitude > 0.5 * (pair[0] + pair[1]));
        }
        (value.to_bits() >> 31) | (level << 1)
    }

    /// The value of a code in those units.
    #[inline(always)]
    fn value(code: u32) -> f32 {
        let levels = Self::levels();
        let mut magnitude = levels[0];
        for (at, level) in levels.iter().enumerate().skip(1) {
            magnitude = if code >> 1 == at as u32 {
                *level
            } else {
                magnitude
            };
        }
        signed(magnitude, code & 1)
    }
}

/// `sum a(i) b(i)` in sixteen lanes of f64.
#[inline(always)]
fn inner_product(values: &[f32], of: impl Fn(f32) -> f32) -> f64 {
    let mut lanes = [0.0f64; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(*value) * f64::from(of(*value));
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += f64::from(*value) * f64::from(of(*value));
    }
    lanes.iter().sum()
}

impl<const BITS: u32, const UNBIASED: bool> Format for Eden<BITS, UNBIASED> {
    const SPEC: &'static CodecSpec = if UNBIASED { &EDEN_SPEC } else { &DRIVE_SPEC };

    fn properties(&self) -> CodecProperties {
        if UNBIASED {
            return CodecProperties::random(f64::INFINITY);
        }
        CodecProperties {
            stochastic: true,
            ..CodecProperties::biased(0.5)
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with([BITS as u8])
    }

    fn block(&self) -> usize {
        BLOCK
    }

    fn block_bytes(&self, len: usize) -> usize {
        8 + planar::bytes_for(len.next_power_of_two(), BITS)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], random: Random, bytes: &mut [u8]) {
        let mut buffer = [0.0; BLOCK];
        let len = padded(values, &mut buffer);
        let turned = &mut buffer[..len];
        let seed = rotation_seed(random);
        rotate(turned, seed);
        let square = sum_of_squares(turned);
        let rms = (square / len as f64).sqrt();
        let per_rms = if rms > 0.0 { to_finite(1.0 / rms) } else { 0.0 };
        let product = inner_product(turned, |z| Self::value(Self::code(z * per_rms)));
        let scale = match (product > 0.0, UNBIASED) {
            (false, _) => 0.0,
            (true, true) => square / product,
            // <z, Q> = q ||z||_1 with one level q, and S = ||z||_1 / (d q) is in units of it.
            (true, false) => product / len as f64 / f64::from(LEVELS_1[0] * LEVELS_1[0]),
        };
        // Rotating back may add what was spread over the block.
        let limit = f64::from(f32::MAX / 16.0 / BLOCK as f32);
        let (head, rest) = bytes.split_at_mut(4);
        head.copy_from_slice(&seed.to_le_bytes());
        let codes = put_f32(to_finite(scale.min(limit)), rest);
        planar::write(turned, BITS, codes, |_, z| Self::code(z * per_rms));
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (scale, codes) = first_f32(&bytes[4..]);
        if !scale.is_finite() {
            return Err(CodecError::NotFinite { field: "scale" });
        }
        let limit = f32::MAX / 8.0 / BLOCK as f32;
        if !(0.0..=limit).contains(&scale) || scale.is_sign_negative() {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        let most = ((1u32 << BITS) - 1) as u8;
        planar::check(codes, BITS, len.next_power_of_two(), most)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (seed, rest) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
        let (scale, codes) = first_f32(rest);
        let mut buffer = [0.0; BLOCK];
        let turned = &mut buffer[..acc.len().next_power_of_two()];
        planar::add(codes, BITS, 1.0, turned, |code| scale * Self::value(code));
        rotate_back(turned, u32::from_le_bytes(*seed));
        for (a, value) in acc.iter_mut().zip(turned) {
            *a += weight * *value;
        }
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        int8()
    }
}
