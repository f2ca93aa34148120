//! Presets that no exchange, codec or schedule allows yet.

use super::{Later, PAIRS, RELAY, later};

const fn preset(
    [name, summary, equation, source]: [&'static str; 4],
    reason: &'static str,
    remedy: &'static str,
) -> Later {
    later("preset", [name, summary, equation, source], reason, remedy)
}

const STAGGERED: &str = "it needs fragments exchanged at other times than a round's end";
const UNDER_TRAINING: &str =
    "it needs an exchange that goes on while the next round trains from its own result";
const LAYERS: &str = "it needs gradients that leave layer by layer while the backward pass runs";
const DILOCO: &str = "use \"diloco\"";
const BSP: &str = "use \"bsp\"";
const D_PSGD: &str = "use \"d-psgd\" with topology = \"base-k\"";

/// All of them, by name.
pub const LATER_PRESETS: [Later; 12] = [
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
            "co2",
            "local inner steps over an all-reduce one round late",
            "as slowmo with D of the round before, and a penalty of its age",
            "Sun et al., ICLR 2024",
        ],
        UNDER_TRAINING,
        "use \"slowmo\"",
    ),
    preset(
        [
            "decoupled-diloco",
            "learners push fragments to a quorum",
            "a' = a + sum tokens_i d_i / sum tokens_i over the quorum and its grace window",
            "arXiv 2604.21428",
        ],
        STAGGERED,
        "use \"diloco\" with exchange = \"parameter-server\" and `synchronization.enough`",
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
        DILOCO,
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
            "noloco",
            "momentum on random pairs, no all-reduce",
            "m' = 0.5 m + 0.7 mean_j (x_j - a_j) + 0.7 (mean_j a_j - a_i), a' = a + m'",
            "Kolehmainen et al., arXiv 2506.10911",
        ],
        PAIRS,
        DILOCO,
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
            "relaysgd",
            "gossip by sums relayed along a tree",
            "m_ij = x_i + sum_{l != j} m_li",
            "Vogels et al., NeurIPS 2021",
        ],
        RELAY,
        D_PSGD,
    ),
    preset(
        [
            "streaming-diloco",
            "diloco a fragment at a time, under training",
            "x' = alpha x + (1 - alpha) a_f', fragment f of P every H / P inner steps, tau later",
            "Douillard et al., arXiv 2501.18512",
        ],
        STAGGERED,
        DILOCO,
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
