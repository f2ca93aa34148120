//! Who waits for whom at a parameter server, by name.

use super::{Entry, Key, key};

pub(super) const ENOUGH: Key = key(
    "synchronization.enough",
    "from 0 to 64",
    "0",
    "contributions that are enough; 0 is all",
);

pub(super) const GRACE: Key = key(
    "synchronization.grace",
    "fixed, adaptive",
    "\"fixed\"",
    "how long the others are waited for once there are enough: a time, or twice the median of how late they were",
);

pub(super) const GRACE_MS: Key = key(
    "synchronization.grace_ms",
    "from 0 milliseconds to a day",
    "0",
    "the time of a fixed grace",
);

pub(super) const FRACTION: Key = key(
    "synchronization.fraction",
    "from a millionth to 1",
    "1.0",
    "probability with which a peer trains in a round, drawn anew in each",
);

const LEAD: Key = key(
    "synchronization.lead",
    "from 1 to a million",
    "3",
    "rounds that the fastest may be ahead of the slowest",
);

const LEAD_MOST: Key = key(
    "synchronization.lead_most",
    "from `synchronization.lead` to a million",
    "15",
    "rounds that the fastest may be ahead of the slowest where that saves time",
);

const BUFFER: Key = key(
    "synchronization.buffer",
    "from 1 to 64",
    "1",
    "contributions that a shard takes in at once",
);

const STALENESS: Key = key(
    "synchronization.staleness",
    "constant, inverse, inverse-root",
    "\"constant\"",
    "what a late contribution counts",
);

const COMPENSATION: Key = key(
    "synchronization.compensation",
    "0 or a number above",
    "0.0",
    "DC-ASGD's lambda: late gradients are corrected for how far the center has moved",
);

/// Values of `synchronization.mode`.
pub const MODES: [Entry; 4] = [
    Entry::new(
        "bsp",
        "all in the same round, or the first n of m and who comes within a grace",
        "a' = outer(a, sum_i w_i d_i / sum_i w_i), i over those in time; the late are part of the next round",
        "Valiant 1990; Chen et al., arXiv 1604.00981",
    )
    .with(&[ENOUGH, GRACE, GRACE_MS, FRACTION]),
    Entry::new(
        "ssp",
        "as asp, and the fastest waits for the slowest when it is too far ahead",
        "c' = outer(c, sum_k w(tau_k) d_k / K), begin round r when min_i r_i >= r - lead",
        "Ho et al., NeurIPS 2013",
    )
    .with(&[LEAD, BUFFER, STALENESS, COMPENSATION]),
    Entry::new(
        "dynamic-ssp",
        "as ssp, and each peer chooses its lead round by round: the smallest with the shortest expected wait",
        "begin round r when min_i r_i >= r - s, s = min argmin W over lead..lead_most, W(s) = the wait of the next lead_most - lead rounds by how long rounds take",
        "Zhao et al., ICDCS 2019",
    )
    .with(&[LEAD, LEAD_MOST, BUFFER, STALENESS, COMPENSATION]),
    Entry::new(
        "asp",
        "nobody waits: contributions are taken in as they arrive",
        "c' = outer(c, sum_k w(tau_k) d_k / K), w(tau) = 1, 1 / max(1, tau) or (1 + tau)^(-1/2); late gradients as g + lambda g g (c - c_pulled)",
        "Dean et al., NeurIPS 2012; Lian et al., NeurIPS 2015; Zhang et al., IJCAI 2016; Zheng et al., ICML 2017; Nguyen et al., AISTATS 2022",
    )
    .with(&[BUFFER, STALENESS, COMPENSATION]),
];
