//! Aggregation rules by name.

use super::{Entry, Key, key, required};

const LIARS: Key = required(
    "aggregation.liars",
    "from 0 to 31",
    "how many members of a group may send wrong values, such as 1",
);

const RADIUS: Key = required(
    "aggregation.radius",
    "a number above 0",
    "the largest norm of a contribution to a shard, such as 3.0",
);

const fn iterations(default: &'static str) -> Key {
    key(
        "aggregation.iterations",
        "from 1 to 100",
        default,
        "iterations of the rule",
    )
}

const BUCKET: Key = key(
    "aggregation.bucket",
    "from 1 to 16",
    "1",
    "contributions averaged before the rule",
);

const TOP: Key = key(
    "aggregation.top",
    "from 0 to 64",
    "16",
    "the most contributions that are merged, the best by rating; 0 is all that lower the loss",
);

const MEMORY: Key = key(
    "aggregation.memory",
    "from 0 to 0.999",
    "0.9",
    "the share of a rating that a round leaves; the rest is the round's score",
);

const BATCHES: Key = key(
    "aggregation.batches",
    "from 1 to 1024",
    "2",
    "batches of the held sample on which a member scores each contribution",
);

/// Values of `aggregation.rule`. x_k are n contributions, w_k their weights, f the liars.
pub const RULES: [Entry; 14] = [
    Entry::new(
        "bulyan",
        "inputs chosen by Krum, then a trimmed mean of each coordinate",
        "choose n - 2 f by Krum, one by one; then by coordinate the mean of the n - 4 f nearest to their median",
        "El Mhamdi et al., ICML 2018",
    )
    .with(&[LIARS]),
    Entry::new(
        "centered-clip",
        "every contribution moves the center by at most a radius",
        "v' = v + (1/n) sum_k (x_k - v) min(1, radius / ||x_k - v||)",
        "Karimireddy et al., ICML 2021",
    )
    .with(&[RADIUS, iterations("3"), BUCKET]),
    Entry::new(
        "clipped-gossip",
        "partners that are pulled move a peer by a limited distance",
        "x' = x + sum_j W_ij (x_j - x) min(1, tau / ||x_j - x||), tau the (d - f)-th least distance of d partners",
        "He et al., arXiv 2202.01545",
    )
    .with(&[LIARS]),
    Entry::new(
        "fed-nova",
        "the mean of deltas divided by their inner steps, times the mean number of these",
        "v = t_eff (1/n) sum_k x_k / t_k, t_k inner steps, t_eff = (1/n) sum_k t_k",
        "Wang et al., NeurIPS 2020",
    ),
    Entry::new(
        "gauntlet",
        "only contributions that lower the loss of members' held samples, and the best by rating of those",
        "s_k = median over i != k of L_i(a) - L_i(a + x_k); r_k' = m r_k + (1 - m) s_k; the weighted mean of the `top` largest r_k' with s_k > 0",
        "Lidin et al., arXiv 2505.21684",
    )
    .with(&[TOP, MEMORY, BATCHES]),
    Entry::new(
        "geometric-median",
        "the smallest sum of distances",
        "v' = sum_k b_k x_k / sum_k b_k, b_k = w_k / max(nu, ||v - x_k||)",
        "Pillutla et al., IEEE TSP 2022",
    )
    .with(&[iterations("8")]),
    Entry::new(
        "krum",
        "the contribution with the nearest neighbours",
        "x_k of the least sum of ||x_k - x_j||^2 over the n - f - 2 nearest j",
        "Blanchard et al., NeurIPS 2017",
    )
    .with(&[LIARS]),
    Entry::new(
        "median",
        "the median of each coordinate",
        "v_d = median of x_kd over k",
        "Yin et al., ICML 2018",
    ),
    Entry::new(
        "multi-krum",
        "the mean of the contributions with the nearest neighbours",
        "the mean of the n - f x_k of least score, scores as krum's",
        "Blanchard et al., NeurIPS 2017",
    )
    .with(&[LIARS]),
    Entry::new(
        "nearest-trimmed-mean",
        "the trimmed mean of means of near inputs",
        "y_k = the mean of the n - f inputs nearest to x_k; then by coordinate the mean of y without its f extremes",
        "Allouah et al., AISTATS 2023",
    )
    .with(&[LIARS]),
    Entry::new(
        "norm-clip",
        "the weighted mean with limited norms",
        "v = sum_k w_k x_k min(1, radius / ||x_k||) / sum_k w_k",
        "Sun et al., arXiv 1911.07963",
    )
    .with(&[RADIUS]),
    Entry::new(
        "sign-majority",
        "the majority of signs in each coordinate",
        "v_d = sign(sum_k sign(x_kd))",
        "Bernstein et al., ICML 2018",
    ),
    Entry::new(
        "trimmed-mean",
        "the mean of each coordinate without its extremes",
        "v_d = the mean of x_kd without the f least and the f largest",
        "Yin et al., ICML 2018",
    )
    .with(&[LIARS]),
    Entry::new(
        "weighted-mean",
        "the mean by samples, summed in PeerId order",
        "v = sum_k w_k x_k / sum_k w_k",
        "McMahan et al., AISTATS 2017",
    ),
];
