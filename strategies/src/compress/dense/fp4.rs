//! Codec `fp4-e3m0`: powers of two in four bits.

use super::format::{Blocks, Format, check_scale, first_f32, inverse, put_f32, scale_of};
use super::planar;
use crate::compress::random::Random;
use crate::compress::simd::largest;
use crate::compress::{Codec, CodecError, CodecProperties, CodecSpec};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "fp4-e3m0",
    tag: 13,
    summary: "signed powers of two, a scale for each 256 values: 4 bits",
    equation: "C(x) = s sgn(x) 2^j, j in {-6 .. 0}, or 0, whichever is nearest; s = max |x| of the block",
    source: "Douillard et al., arXiv 2501.18512 (section 3.3)",
    parameters: &[],
    build: |_| Box::new(Blocks(Fp4)),
};

/// Values that share a scale.
const BLOCK: usize = 256;

/// A sign and three bits of exponent, no fraction.
///
/// ```text
/// s    = max |x| over a block of 256
/// C(x) = s sgn(x) 2^j with j in {-6 .. 0}, or 0: whichever is nearest
/// ```
///
/// A value between two powers is at most a third of itself from the nearer one, and a value that
/// becomes zero is at most 2^-7 s. Hence `||C(x) - x||^2 <= (1/9 + 255 / 2^14) ||x||^2`. 4.125 bits
/// for each value.
///
/// Contributions are sent relative to the anchor (pseudo-gradients, summed in f32). It is too
/// coarse for parameters.
///
/// Layout of a block: s (f32), codes of 4 bits in planes: 0 for zero, j + 7, and 8 more for a
/// negative value. Blocks whose s is below the smallest normal f32 become zero.
///
/// Source: Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512), section 3.3. The paper does not
/// say how it scales; the scale of a block is ours.
#[derive(Clone, Copy, Debug)]
struct Fp4;

impl Format for Fp4 {
    const SPEC: &'static CodecSpec = &SPEC;

    fn properties(&self) -> CodecProperties {
        CodecProperties {
            dense: false,
            ..CodecProperties::rounding(1.0 / 9.0 + (BLOCK - 1) as f64 / 16384.0)
        }
    }

    fn block(&self) -> usize {
        BLOCK
    }

    fn block_bytes(&self, len: usize) -> usize {
        4 + planar::bytes_for(len, 4)
    }

    #[inline(always)]
    fn write(&self, values: &[f32], _: Random, bytes: &mut [u8]) {
        let scale = scale_of(largest(values), 1.0);
        let per_scale = inverse(scale);
        planar::write(values, 4, put_f32(scale, bytes), |_, value| {
            let y = value.abs() * per_scale;
            // Half of a power's distance to the next carries into the exponent.
            let exponent = (y.to_bits() + 0x0040_0000) >> 23;
            let code = exponent.saturating_sub(127 - 7).clamp(1, 7);
            let code = if y < 1.0 / 128.0 { 0 } else { code };
            let sign = if code == 0 { 0 } else { value.to_bits() >> 31 };
            code | (sign << 3)
        });
    }

    #[inline(always)]
    fn check(&self, bytes: &[u8], len: usize) -> Result<(), CodecError> {
        let (scale, codes) = first_f32(bytes);
        check_scale(scale, 1.0)?;
        planar::check(codes, 4, len, 15)
    }

    #[inline(always)]
    fn add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) {
        let (scale, codes) = first_f32(bytes);
        planar::add(codes, 4, weight, acc, |code| {
            let exponent = code & 7;
            let magnitude = f32::from_bits((exponent + 127 - 7) << 23);
            let magnitude = if exponent == 0 { 0.0 } else { magnitude };
            let sign = (code >> 3) << 31;
            scale * f32::from_bits(magnitude.to_bits() | sign)
        });
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Blocks(super::bf16::Bf16))
    }
}
