//! Codecs `fp8-e4m3` and `fp8-e5m2`: floats of eight bits with a power of two for every block.

use super::format::Blocks;
use super::mini_float::MiniFloat;
use crate::compress::spec::CodecSpec;

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

/// Floats with 3 bits of fraction: `||C(x) - x||^2 <= 2^-8 ||x||^2`. [`MiniFloat`] has the equation
/// and the layout.
///
/// 8 bits for each value. Values more than 2^13 below the largest of their block lose bits.
///
/// Source: Micikevicius et al., "FP8 formats for deep learning" (arXiv 2209.05433), table 1;
/// scaling as in section 3.
const E4M3: MiniFloat<4, 3> = MiniFloat {
    name: "fp8-e4m3",
    tag: E4M3_SPEC.tag,
    top: 7,
};

/// Floats with 2 bits of fraction: `||C(x) - x||^2 <= 2^-6 ||x||^2`, with full precision down to
/// 2^28 below the largest of the block. Otherwise as [`E4M3`].
const E5M2: MiniFloat<5, 2> = MiniFloat {
    name: "fp8-e5m2",
    tag: E5M2_SPEC.tag,
    top: 14,
};
