//! Codec `fp16`: half floats with a power of two for every block. Half the bytes, and three bits of
//! fraction more than `bf16`.

use super::format::Blocks;
use super::mini_float::MiniFloat;
use crate::compress::spec::CodecSpec;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "fp16",
    tag: 10,
    summary: "half floats, a power of two for each 4096 values: 2 bytes",
    equation: "C(x) = 2^e half(x / 2^e), e of the block's largest",
    source: "Micikevicius et al., ICLR 2018 (section 3.2); OpenDiLoCo, arXiv 2407.07852",
    parameters: &[],
    build: |_| Box::new(Blocks(FP16)),
};

/// IEEE binary16; [`MiniFloat`] has the equation and the layout.
///
/// `||C(x) - x||^2 <= 2^-22 ||x||^2`, and a little more for values that are more than 2^28 below
/// the largest of their block. 16 bits for each value. Works for deltas, gradients and parameters.
///
/// Source: Micikevicius et al., "Mixed precision training" (ICLR 2018): the scale is that of
/// section 3.2, chosen for each block. OpenDiLoCo (arXiv 2407.07852) uses it for pseudo-gradients.
const FP16: MiniFloat<5, 10> = MiniFloat {
    name: "fp16",
    tag: SPEC.tag,
    top: 14,
};
