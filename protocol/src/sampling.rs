//! Client sampling: which of the peers train in a round. It depends on the run, the round and the
//! peer alone, so all peers agree on it even where their views differ.

use serde::{Deserialize, Serialize};

/// The share of the peers that train in a round.
///
/// Each peer is drawn independently with the same probability C, so the number of drawn peers is
/// binomial with mean n C. (FedAvg draws max(C n, 1) of n known clients. Here no peer knows n for
/// certain, and a fixed number would make the sample depend on each peer's view.) A peer that is
/// not drawn says at once that it is ready, with weight 0. It contributes nothing and delays no
/// other peer, but it votes and reduces its shards. A round in which no peer is drawn is void; it
/// takes as long as forming its group.
///
/// ```text
/// a' = outer(a, sum_{i in S_r} w_i C(d_i) / sum_{i in S_r} w_i),
/// i in S_r iff hash(run, r, i) < C 2^64
/// ```
///
/// Cost: with m of n peers drawn, contributions take m (n - 1) pushes instead of n (n - 1).
/// Aggregates and votes cost the same as without sampling. **Source:** McMahan et al. 2017,
/// "Communication-efficient learning of deep networks from decentralized data", algorithm 1 (C);
/// independent draws: McMahan et al. 2018, "Learning differentially private recurrent language
/// models", algorithm 1 (q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// The probability in millionths, from 1 to 1,000,000.
    pub per_million: u32,
}

impl Sampling {
    /// All peers in every round.
    pub const ALL: Self = Self {
        per_million: 1_000_000,
    };

    /// Whether the probability is above zero and at most one: some peer must be drawn eventually.
    pub const fn fits(self) -> bool {
        self.per_million > 0 && self.per_million <= Self::ALL.per_million
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::ALL
    }
}
