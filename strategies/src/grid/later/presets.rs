//! Presets that no exchange, codec or schedule allows yet.

use super::{Later, later};

const fn preset(
    [name, summary, equation, source]: [&'static str; 4],
    reason: &'static str,
    remedy: &'static str,
) -> Later {
    later("preset", [name, summary, equation, source], reason, remedy)
}

const UNDER_TRAINING: &str =
    "it needs the own delta in the anchor at once and taken out again when the others' come";
const LAYERS: &str = "it needs gradients that leave layer by layer while the backward pass runs";
const BSP: &str = "use \"bsp\"";

/// All of them, by name.
pub const LATER_PRESETS: [Later; 7] = [
    preset(
        [
            "bytescheduler-allreduce",
            "tensors cut, the first needed sent first",
            "as bsp, by priority",
            "Peng et al., SOSP 2019",
        ],
        LAYERS,
        BSP,
    ),
    preset(
        [
            "bytescheduler-ps",
            "as bytescheduler-allreduce, through servers",
            "as bsp, by priority",
            "Peng et al., SOSP 2019",
        ],
        LAYERS,
        BSP,
    ),
    preset(
        [
            "demo",
            "the largest frequencies of a momentum",
            "m' = beta m + lr g, q = top-k DCT(m'), m' -= IDCT(q), x' = x - lr sign(IDCT(mean q))",
            "Peng et al., arXiv 2411.19870",
        ],
        "the sign that it takes of the mean is no outer optimizer that is built",
        "use \"bsp\" with codec = \"de-mo\"",
    ),
    preset(
        [
            "eager-diloco",
            "diloco with the own delta at once and the others' a round late",
            "D = d_i / n + (mean d_old - d_i,old / n)",
            "Kale et al., arXiv 2502.12996",
        ],
        UNDER_TRAINING,
        "use \"streaming-diloco\"",
    ),
    preset(
        [
            "mg-wfbp",
            "wfbp with tensors merged where that is faster",
            "as bsp, merged by alpha + beta m and the times of backward",
            "Shi et al., INFOCOM 2019",
        ],
        LAYERS,
        BSP,
    ),
    preset(
        [
            "powersgd",
            "gradients of low rank",
            "P = M Q, orthogonal, Q = M^T P; M ~ P Q^T",
            "Vogels et al., NeurIPS 2019",
        ],
        "it needs an exchange that agrees on P before it sends Q",
        "use \"bsp\" with codec = \"power-sgd\"",
    ),
    preset(
        [
            "wfbp",
            "gradients leave layer by layer while backward runs",
            "as bsp",
            "Zhang et al., USENIX ATC 2017",
        ],
        LAYERS,
        BSP,
    ),
];
