//! Codec `fp16`: half floats with a power of two for every block. Half the bytes, three bits of
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

/// IEEE binary16 ([`MiniFloat`] has equation and layout): `||C(x) - x||^2 <= 2^-22 ||x||^2` and a
/// little for values more than 2^28 below their block's largest. 16 bits a value, no state; carries
/// deltas, gradients and parameters. Source: Micikevicius et al., "Mixed precision training" (ICLR
/// 2018): the scale is that of section 3.2, chosen for each block; used for pseudo-gradients in
/// OpenDiLoCo (arXiv 2407.07852).
const FP16: MiniFloat<5, 10> = MiniFloat {
    name: "fp16",
    tag: SPEC.tag,
    top: 14,
};
