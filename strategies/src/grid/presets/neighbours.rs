//! Presets whose peers mix parameters with neighbours and agree on no anchor.

use super::preset::{Preset, point};

/// The presets, by the way of mixing.
pub(super) const NEIGHBOURS: [Preset; 21] = [
    point(
        [
            "d-psgd",
            "mixing with two neighbours after every inner step",
            "x_i' = sum_j W_ij (x_j - lr g_j), W the ring's",
            "Lian et al., NeurIPS 2017",
        ],
        include_str!("d-psgd.toml"),
    ),
    point(
        [
            "sgp",
            "push-sum to one peer at a doubling distance after every inner step",
            "(x, w)_i' = sum_j P_ij (x, w)_j, z = x / w, P the one-peer exponential graph's",
            "Assran et al., ICML 2019",
        ],
        include_str!("sgp.toml"),
    ),
    point(
        [
            "osgp",
            "sgp without waiting for pushes in flight",
            "as sgp, over what has arrived",
            "Assran et al., ICML 2019, algorithm 2",
        ],
        include_str!("osgp.toml"),
    ),
    point(
        [
            "gossipgrad",
            "mixing with one partner that rotates after every inner step",
            "x_i' = (x_i + x_j) / 2, j at a distance that changes with the round",
            "Daily et al., arXiv 1803.05880",
        ],
        include_str!("gossipgrad.toml"),
    ),
    point(
        [
            "ad-psgd",
            "pairs average whenever one of them is ready",
            "x_i, x_j <- (x_i + x_j) / 2, then x_i' = x_i - lr g",
            "Lian et al., ICML 2018",
        ],
        include_str!("ad-psgd.toml"),
    ),
    point(
        [
            "choco",
            "gossip of compressed differences to replicas",
            "h_i' = h_i + C(x_i - h_i), x_i' = x_i + rate sum_j W_ij (h_j - h_i)",
            "Koloskova et al., ICML 2019 and ICLR 2020",
        ],
        include_str!("choco.toml"),
    ),
    point(
        [
            "deepsqueeze",
            "gossip with error feedback",
            "v = x - lr g + e, x' = x + rate sum_j W_ij (C(v_j) - C(v_i)), e' = v - C(v)",
            "Tang et al., arXiv 1907.07346",
        ],
        include_str!("deepsqueeze.toml"),
    ),
    point(
        [
            "d2",
            "gossip without the bias of unequal data",
            "x' = W (2 x - x_old - lr (g - g_old)), as y = x - lr g - d, d' = d + (y - W y), x' = y - (d' - d)",
            "Tang et al., ICML 2018; Yuan et al., IEEE TSP 2019",
        ],
        include_str!("d2.toml"),
    ),
    point(
        [
            "gradient-tracking",
            "gossip with a tracker of the mean gradient",
            "y = g + s, x' = W (x - lr y), s' = s + W y - y",
            "Nedic et al., SIAM J. Optim. 2017; Pu and Nedic 2021",
        ],
        include_str!("gradient-tracking.toml"),
    ),
    point(
        [
            "beer",
            "gradient tracking with compressed differences to replicas",
            "y = g + s, x' = x - lr y + rate (W h - h), s' = s + rate (W k - k), h and k the replicas of x and y",
            "Zhao et al., NeurIPS 2022",
        ],
        include_str!("beer.toml"),
    ),
    point(
        [
            "relaysgd",
            "sums relayed along a double binary tree: exact, delayed by the distance",
            "m_ij = y_i + sum_{l != j} m_li, x_i' = (y_i + sum_j m_ji + (n - 1 - sum_j c_ji) y_i) / n, y = x - lr g",
            "Vogels et al., NeurIPS 2021",
        ],
        include_str!("relaysgd.toml"),
    ),
    point(
        [
            "noloco",
            "momentum on random pairs, no all-reduce",
            "m' = 0.5 m + 0.7 mean_j (x_j - a_j) + 0.7 (mean_j a_j - a_i), a' = a + m', j the pair",
            "Kolehmainen et al., arXiv 2506.10911",
        ],
        include_str!("noloco.toml"),
    ),
    point(
        [
            "moshpit",
            "the means of small groups that change with the round",
            "x_i' = mean of the group, groups along axis r mod d of a grid",
            "Ryabinin et al., NeurIPS 2021",
        ],
        include_str!("moshpit.toml"),
    ),
    point(
        [
            "guarded-gossip",
            "pulled parameters that move a peer by a limited distance",
            "x_i' = x_i + sum_j W_ij (x_j - x_i) min(1, tau_i / ||x_j - x_i||)",
            "He et al., arXiv 2202.01545",
        ],
        include_str!("guarded-gossip.toml"),
    ),
    point(
        [
            "dcd-psgd",
            "gossip of compressed differences to one copy that all neighbours hold",
            "h_i' = h_i + C(x_i - lr g_i - h_i), x_i' = sum_j W_ij h_j'",
            "Tang et al., NeurIPS 2018",
        ],
        include_str!("dcd-psgd.toml"),
    ),
    point(
        [
            "ecd-psgd",
            "gossip of estimates from compressed extrapolations",
            "h_i' = (1 - 2/t) h_i + (2/t) C(x_i_old + (t/2) (x_i - x_i_old)), x_i' = sum_j W_ij h_j'",
            "Tang et al., NeurIPS 2018",
        ],
        include_str!("ecd-psgd.toml"),
    ),
    point(
        [
            "motef",
            "tracking of averaged gradients with compressed differences to replicas",
            "u' = beta u + (1 - beta) g, y = u' + s, x' = x - lr y + rate (W h - h), s' = s + rate (W k - k), h and k the replicas of x and y",
            "Islamov et al., arXiv 2405.20114",
        ],
        include_str!("motef.toml"),
    ),
    point(
        [
            "prague",
            "a partial all-reduce in a random small group after every inner step",
            "x_i' = mean over the group of i, other groups in every round",
            "Luo et al., ASPLOS 2020",
        ],
        include_str!("prague.toml"),
    ),
    point(
        [
            "wagma",
            "means of groups that no peer waits for, and of all peers in every tenth round",
            "x_i' = m, or (n m + x_i) / (n + 1) where i was late, m the one mean of its group of n of what each published last; every tau-th round over all of that round",
            "Li et al., IEEE TPDS 2021",
        ],
        include_str!("wagma.toml"),
    ),
    point(
        [
            "hop",
            "queues of iterates, bounded staleness, a backup neighbour and skipped rounds",
            "x_i' = sum_j a_j x_j / sum_j a_j over i and the neighbours that answered, x_j of round r_j <= k, a_j = W_ij (r_j - (k - s) + 1)",
            "Luo et al., ASPLOS 2019",
        ],
        include_str!("hop.toml"),
    ),
    point(
        [
            "saps",
            "the mean of a random part of the parameters with one partner over a fast link",
            "x_i' = x_i + 1/2 M (x_j - x_i), j the partner of the round, M its mask of random places",
            "Tang et al., ICDCS 2020",
        ],
        include_str!("saps.toml"),
    ),
];
