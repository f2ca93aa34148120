//! Schedules of an all-reduce and contributions, by name.

use super::{Entry, Key, required};
use crate::parameter::{Parameter, Range};

/// The key of a schedule with islands.
pub(in crate::grid) const GROUP: Parameter = Parameter {
    name: "group",
    range: Range::Whole(2, 64),
    default: Some(4.0),
    about: "peers of an island",
};

/// Where the islands of a schedule come from.
pub(in crate::grid) const ISLANDS: Parameter = Parameter {
    name: "islands_by",
    range: Range::Choice(&["ranks", "sites"]),
    default: Some(0.0),
    about: "whether islands are runs of ranks by peer id, or of peers at one site",
};

/// When a schedule is found again for links that the run has measured.
pub(in crate::grid) const LINK_ROUNDS: Parameter = Parameter {
    name: "link_rounds",
    range: Range::Whole(0, 65_535),
    default: Some(0.0),
    about: "rounds after which peers measure their links again and may change the schedule; 0 is never",
};

/// What a schedule that is found again takes a send to cost beside its bytes.
pub(in crate::grid) const LINK_LATENCY: Parameter = Parameter {
    name: "link_latency_ms",
    range: Range::Closed(0.0, 10_000.0),
    default: Some(10.0),
    about: "with link_rounds: one-way latency between two peers, which every send costs beside its bytes",
};

/// The key of a schedule that is found for measured links.
pub(in crate::grid) const LINKS: Key = required(
    "architecture.link_mbit",
    "a square table of whole numbers, 1 to 1000000, for 2 to 16 peers; or link_rounds above 0",
    "Mbit/s that row i reached sending to column j alone, peers by their ids; the diagonal is not used",
);

/// Values of `architecture.schedule`: the order in which an all-reduce of n members and m bytes
/// forms its sums. Each equation says how much the busiest member sends, and how many pushes depend
/// on one another.
pub const SCHEDULES: [Entry; 9] = [
    Entry::new(
        "binary-tree",
        "up and down one binary tree; fragments follow one another through it",
        "3 m, 2 floor(log2 n) hops: s_i = d_i + s_{2i+1} + s_{2i+2}, the mean at rank 0",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "butterfly",
        "every member reduces a shard directly, without late members",
        "2 m (n-1)/n, 2 hops: s_k = sum_i d_i[k] at rank k",
        "Ryabinin et al., NeurIPS 2021",
    ),
    Entry::new(
        "double-tree",
        "half through each of two binary trees; inner ranks of one are leaves of the other",
        "2 m, 2 floor(log2 n) hops: binary-tree of one half, and of the other in reverse order of ranks",
        "Sanders et al., Parallel Computing 2009",
    ),
    Entry::new(
        "halving-doubling",
        "pairs at halving distances swap halves, then pass them on",
        "2 m (p-1)/p, 2 log2 p hops for p = 2^floor(log2 n); where n > p the rest folds first: m (3p-2)/p, 2 hops more",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "hierarchical",
        "islands of consecutive ranks, or within sites, send all to a leader, leaders form a ring",
        "m (2 (L-1)/L + g-1) at a leader, of it 2 m (L-1)/L between islands, 2 L hops, L = ceil(n/g), g the group",
        "Jia et al., arXiv 1807.11205",
    )
    .taking(&[GROUP, ISLANDS]),
    Entry::new(
        "recursive-doubling",
        "pairs at doubling distances swap whole sums",
        "m log2 p, log2 p hops for p = 2^floor(log2 n); where n > p the rest folds first: m more, 1 or 2 hops more",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "ring",
        "every shard around a ring, twice",
        "2 m (n-1)/n, 2 (n-1) hops: s_k passes ranks k+1, ..., k+n, each adding its d_i[k]",
        "Patarasuk and Yuan, JPDC 2009",
    ),
    Entry::new(
        "torus",
        "rings along rows, then columns, of a grid r x c = n; a prime is one ring",
        "2 m (n-1)/n, 2 (r-1) + 2 (c-1) hops, r the largest divisor of n up to sqrt n",
        "Mikami et al., arXiv 1811.05233",
    ),
    Entry::new(
        "synthesized",
        "trees packed onto measured links, where they save a tenth of the butterfly's time; with link_rounds measured again and sent in order",
        "min over trees of max over links of (shards over it) / (k rate), up to 4 hops; else butterfly",
        "Wang et al., MLSys 2020 (Blink); Luo et al., MLSys 2020 (PLink); Shah et al., NSDI 2023 (TACCL)",
    )
    .with(&[LINKS])
    .taking(&[LINK_ROUNDS, LINK_LATENCY]),
];

/// Values of `architecture.contribution`.
pub const CONTRIBUTIONS: [Entry; 3] = [
    Entry::new(
        "gradient",
        "the gradient of one inner step at the anchor",
        "d_i = grad f_i(a)",
        "-",
    ),
    Entry::new(
        "delta",
        "parameters after the round minus the anchor",
        "d_i = x_i - a",
        "-",
    ),
    Entry::new("parameters", "the parameters themselves", "x_i", "-"),
];
