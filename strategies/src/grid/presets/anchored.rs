//! The baseline, and presets whose peers agree on an anchor or have a center.

use super::preset::{Preset, point};

/// The baseline, and presets whose peers agree on an anchor or have a center.
pub(super) const ANCHORED: [Preset; 40] = [
    point(
        [
            "none",
            "every peer trains alone: the baseline",
            "x_i' = x_i - lr g_i",
            "-",
        ],
        include_str!("none.toml"),
    ),
    point(
        [
            "bsp",
            "the mean gradient of all peers after every inner step",
            "x' = inner(x, mean_i g_i(x))",
            "Valiant 1990; Li et al., OSDI 2014",
        ],
        include_str!("bsp.toml"),
    ),
    point(
        [
            "wfbp",
            "bsp whose gradients leave layer by layer while the backward pass runs",
            "x' = inner(x, mean_i g_i(x)), begin(l) = ready(l)",
            "Zhang et al., USENIX ATC 2017",
        ],
        include_str!("wfbp.toml"),
    ),
    point(
        [
            "mg-wfbp",
            "wfbp with tensors merged where that is faster",
            "as wfbp, merged by alpha + beta m and the times of backward",
            "Shi et al., INFOCOM 2019",
        ],
        include_str!("mg-wfbp.toml"),
    ),
    point(
        [
            "bytescheduler-allreduce",
            "wfbp of equal pieces, sent in the order in which the next forward pass needs them, which begins with them",
            "as wfbp, priority(l) = l, forward(l) = max(end(l), forward(l - 1) + compute(l - 1))",
            "Peng et al., SOSP 2019",
        ],
        include_str!("bytescheduler-allreduce.toml"),
    ),
    point(
        [
            "bytescheduler-ps",
            "as bytescheduler-allreduce, through servers",
            "as bytescheduler-allreduce",
            "Peng et al., SOSP 2019",
        ],
        include_str!("bytescheduler-ps.toml"),
    ),
    point(
        [
            "dear",
            "wfbp of equal pieces: gradients are reduced under the backward pass, means are handed out under the next forward pass",
            "priority(contribution) = 0, priority(aggregate of l) = 1 + l, forward(l) as bytescheduler-allreduce",
            "Zhang et al., ICDCS 2023",
        ],
        include_str!("dear.toml"),
    ),
    point(
        [
            "qsgd",
            "bsp with gradients of 4 bits, rounded at random",
            "x' = inner(x, mean_i Q(g_i)), Q(g) = ||g|| sgn(g) xi / s",
            "Alistarh et al., NeurIPS 2017",
        ],
        include_str!("qsgd.toml"),
    ),
    point(
        [
            "terngrad",
            "bsp with gradients of -1, 0 and 1, rounded at random",
            "x' = inner(x, mean_i s_i sgn(g_i) b_i), P(b = 1) = |g| / s",
            "Wen et al., NeurIPS 2017",
        ],
        include_str!("terngrad.toml"),
    ),
    point(
        [
            "signsgd-majority",
            "bsp with a vote of signs in both directions",
            "x' = x - lr sign(sum_i sign(g_i))",
            "Bernstein et al., ICLR 2019",
        ],
        include_str!("signsgd-majority.toml"),
    ),
    point(
        [
            "one-bit-adam",
            "Adam with a frozen second moment on gradients of 1 bit with error feedback",
            "x' = adam(x, mean_i C(g_i + e_i)), v' = v after the warm-up",
            "Tang et al., ICML 2021",
        ],
        include_str!("one-bit-adam.toml"),
    ),
    point(
        [
            "demo",
            "the sign of the mean of the largest cosine coefficients of every peer's momentum",
            "m' = beta m + g, q_i = top-k DCT(m_i'), m_i' -= DCT^-1(q_i), x' = x - lr sign(DCT^-1(mean_i q_i))",
            "Peng et al., arXiv 2411.19870",
        ],
        include_str!("demo.toml"),
    ),
    point(
        [
            "powersgd",
            "bsp with gradients of rank 4 and error feedback",
            "P = orth(M Q), Q = M^T P, x' = inner(x, mean_i P_i Q_i^T), e' = M - P Q^T",
            "Vogels et al., NeurIPS 2019",
        ],
        include_str!("powersgd.toml"),
    ),
    point(
        [
            "dgc",
            "bsp with the largest values of a corrected momentum",
            "u' = mu u + g, v' = v + u', x' = x - lr mean_i top-k(v_i'), u and v zero where sent",
            "Lin et al., ICLR 2018",
        ],
        include_str!("dgc.toml"),
    ),
    point(
        [
            "local-sgd",
            "the mean of the peers after a round of inner steps",
            "a' = mean_i x_i",
            "Stich, ICLR 2019",
        ],
        include_str!("local-sgd.toml"),
    ),
    point(
        [
            "local-adam",
            "as local-sgd, with AdamW as the inner optimizer",
            "x_i' = x_i - lr adam(g_i) for H inner steps, a' = a + mean_i (x_i - a)",
            "Cheng and Glasgow, ICLR 2025",
        ],
        include_str!("local-adam.toml"),
    ),
    point(
        [
            "post-local",
            "the mean after every inner step at first, local-sgd later",
            "a' = mean_i x_i, after H = 1 inner step before round 200, then after 16",
            "Lin et al., ICLR 2020",
        ],
        include_str!("post-local.toml"),
    ),
    point(
        [
            "fedavg",
            "the mean of the peers after each has passed over its data, all peers in every round",
            "a' = sum_i samples_i x_i / sum_i samples_i",
            "McMahan et al., AISTATS 2017",
        ],
        include_str!("fedavg.toml"),
    ),
    point(
        [
            "fedprox",
            "fedavg with a proximal term that pulls to the anchor",
            "g' = g + mu (x - a)",
            "Li et al., MLSys 2020",
        ],
        include_str!("fedprox.toml"),
    ),
    point(
        [
            "scaffold",
            "fedavg with control variates, which remove the drift of unequal data",
            "g' = g - c_i + c, c_i' = c_i - c + (a - x) / (H lr), a' = mean_i x_i, c' = mean_i c_i'",
            "Karimireddy et al., ICML 2020",
        ],
        include_str!("scaffold.toml"),
    ),
    point(
        [
            "fedadam",
            "fedavg with Adam as the outer optimizer",
            "m' = b1 m + (1 - b1) D, v' = b2 v + (1 - b2) D^2, a' = a + lr m' / (sqrt(v') + eps)",
            "Reddi et al., ICLR 2021",
        ],
        include_str!("fedadam.toml"),
    ),
    point(
        [
            "slowmo",
            "local-sgd with heavy-ball momentum as the outer optimizer",
            "u' = mu u - D, a' = a - lr u'",
            "Wang et al., ICLR 2020",
        ],
        include_str!("slowmo.toml"),
    ),
    point(
        [
            "diloco",
            "as local-sgd, with Nesterov momentum as the outer optimizer",
            "m' = mu m - D, a' = a - lr (mu m' - D)",
            "Douillard et al., arXiv 2311.08105",
        ],
        include_str!("diloco.toml"),
    ),
    point(
        [
            "streaming-diloco",
            "diloco one fragment at a time, during training",
            "x' = alpha x + (1 - alpha) a_f', fragment f of P every H / P inner steps, tau later",
            "Douillard et al., arXiv 2501.18512",
        ],
        include_str!("streaming-diloco.toml"),
    ),
    point(
        [
            "eager-diloco",
            "diloco with a peer's own delta at once and the others' one round later",
            "x = a + e_i, e_i the outer step of d_i / n alone; a round later x' = a' + (x - a - e_i)",
            "Kale et al., arXiv 2502.12996",
        ],
        include_str!("eager-diloco.toml"),
    ),
    point(
        [
            "decoupled-diloco",
            "diloco one fragment at a time through a server that waits for a majority",
            "a' = a + sum tokens_i d_i / sum tokens_i over the quorum and its grace window",
            "arXiv 2604.21428",
        ],
        include_str!("decoupled-diloco.toml"),
    ),
    point(
        [
            "co2",
            "local inner steps over an all-reduce one round late",
            "u' = clip(mu u - D / (1 + lr ||u|| / ||D||)), a' = a - lr u', D of the round before",
            "Sun et al., ICLR 2024",
        ],
        include_str!("co2.toml"),
    ),
    point(
        [
            "sparseloco",
            "the largest values of every chunk of the deltas, in 2 bits, with a residual that decays",
            "e' = beta e + d, s = Q(top-k(e')), e' -= s, a' = a + mean_i s_i",
            "Sarfi et al., arXiv 2508.15706",
        ],
        include_str!("sparseloco.toml"),
    ),
    point(
        [
            "muloco",
            "diloco with Muon as the inner optimizer and deltas of 2 bits with error feedback",
            "D = mean_i Q(d_i + e_i), m' = mu m - D, a' = a - lr (mu m' - D)",
            "Therien et al., arXiv 2505.23725",
        ],
        include_str!("muloco.toml"),
    ),
    point(
        [
            "local-adam-lm",
            "local-adam for language models: longer rounds, with warm-up and a schedule",
            "as local-adam: x_i' = x_i - lr(t) adam(g_i), a' = mean_i x_i",
            "Cheng and Glasgow, ICLR 2025",
        ],
        include_str!("local-adam-lm.toml"),
    ),
    point(
        [
            "diloco-lm",
            "diloco for language models: AdamW with warm-up and a schedule, longer rounds, a calmer outer step",
            "as diloco, with adam-w inside: x_i' = x_i - lr(t) adam(g_i)",
            "Douillard et al., arXiv 2311.08105",
        ],
        include_str!("diloco-lm.toml"),
    ),
    point(
        [
            "streaming-diloco-lm",
            "streaming-diloco for language models, as diloco-lm",
            "as streaming-diloco, with adam-w inside: x_i' = x_i - lr(t) adam(g_i)",
            "Douillard et al., arXiv 2501.18512",
        ],
        include_str!("streaming-diloco-lm.toml"),
    ),
    point(
        [
            "sparseloco-lm",
            "sparseloco for language models: with warm-up and a schedule",
            "as sparseloco, x_i' = x_i - lr(t) adam(g_i)",
            "Sarfi et al., arXiv 2508.15706",
        ],
        include_str!("sparseloco-lm.toml"),
    ),
    point(
        [
            "ssp",
            "a center applies every gradient as it arrives; the fastest may be a few rounds ahead",
            "c' = inner(c, g_i(c_old)), begin round r when min_i r_i >= r - lead",
            "Ho et al., NeurIPS 2013",
        ],
        include_str!("ssp.toml"),
    ),
    point(
        [
            "asp",
            "a center applies every gradient as it arrives",
            "c' = inner(c, g_i(c_old))",
            "Dean et al., NeurIPS 2012; Lian et al., NeurIPS 2015",
        ],
        include_str!("asp.toml"),
    ),
    point(
        [
            "fedbuff",
            "a center applies ten deltas at once and weighs late ones less",
            "c' = c + sum_k d_k / (K sqrt(1 + tau_k))",
            "Nguyen et al., AISTATS 2022",
        ],
        include_str!("fedbuff.toml"),
    ),
    point(
        [
            "async-local-sgd",
            "a center applies every delta as it arrives, with delayed momentum",
            "outer delayed-nesterov on arrivals",
            "Liu et al., arXiv 2401.09135",
        ],
        include_str!("async-local-sgd.toml"),
    ),
    point(
        [
            "easgd",
            "elastic averaging with a center",
            "x' = x - alpha (x - c), c' = c + alpha (x - c)",
            "Zhang et al., NeurIPS 2015",
        ],
        include_str!("easgd.toml"),
    ),
    point(
        [
            "guarded",
            "local-sgd of groups with a lying member, by a robust mean",
            "y_k = mean of the n - f d_j nearest to d_k; a' = a + trimmed mean of y",
            "Allouah et al., AISTATS 2023; Yin et al., ICML 2018",
        ],
        include_str!("guarded.toml"),
    ),
    point(
        [
            "acco",
            "one half of a step's gradients is summed while the other half is computed; none is late",
            "u at x~, w at x: x~' = inner(x, mean_i u_i), x' = inner(x, mean_i (u_i + w_i) / 2)",
            "Nabli et al., NeurIPS 2025",
        ],
        include_str!("acco.toml"),
    ),
];
