//! Topologies `random-matching` and `random-regular`: random pairs, new ones in every round, or several matchings drawn
//! once. All peers compute them without messages.

use super::draw;
use super::spec::{TopologySpec, degree};
use super::weights::symmetric;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const RANDOM_MATCHING: TopologySpec = TopologySpec {
    name: "random-matching",
    summary: "new pairs in every round",
    equation: "W_ii = W_ij = 1/2 for the pairs of a random matching of the round",
    source: "Boyd et al., IEEE Trans. Inf. Th. 2006",
    random_pairs: true,
    ..TopologySpec::symmetric(|_, seed| Box::new(RandomMatching::new(seed)))
};

/// `W[i][i] = W[i][j] = 1/2` for the pairs (i, j) of a uniformly random perfect matching of the
/// round; with odd n one peer rests (`W[i][i] = 1`).
///
/// Symmetric and doubly stochastic. The expected W has spectral gap `n / (2 (n - 1))` for even n
/// and 1/2 for odd n. Pairs are neighbours in a shuffle (Fisher-Yates) drawn from ChaCha8 with
/// the seed as key and the round as stream, so every peer that knows the seed and n draws the
/// same. Source: Boyd et al., "Randomized gossip algorithms" (IEEE Transactions on Information
/// Theory 2006), with a whole matching instead of one pair a round.
#[derive(Clone, Copy, Debug)]
pub struct RandomMatching {
    seed: u64,
}

impl RandomMatching {
    /// All peers of a run need the same seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }
}

impl Topology for RandomMatching {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        let partner = draw::matched(&mut draw::stream(self.seed, round.0), rank, count);
        symmetric(partner.map(|other| (other, 0.5)).into_iter().collect())
    }
}

pub(super) const RANDOM_REGULAR: TopologySpec = TopologySpec {
    name: "random-regular",
    summary: "the union of a few random matchings",
    equation: "W = (I + sum_{m <= d} P_m) / (d + 1), P_m random matchings drawn once",
    source: "Friedman, Mem. AMS 2008",
    parameters: &[degree(4.0, "matchings")],
    ..TopologySpec::symmetric(|kind, seed| Box::new(RandomRegular::new(seed, kind.count("degree"))))
};

/// `W = (I + sum_{m=1}^d P_m) / (d + 1)` with d independent uniformly random matchings `P_m`; the
/// same in every round.
///
/// Symmetric and doubly stochastic for any n: a pair that two matchings share weighs twice, and a
/// peer without a partner in one (odd n) keeps that share. For even n this is the matching model of
/// random d-regular graphs, whose second eigenvalue is `2 sqrt(d - 1) / (d + 1) + o(1)` here with
/// high probability: a gap that does not shrink with n for d > 2. Source: Friedman, "A proof of
/// Alon's second eigenvalue conjecture and related problems" (Memoirs of the AMS 2008). Special
/// case: d = 1 is one matching for ever and does not mix beyond its pairs.
#[derive(Clone, Copy, Debug)]
pub struct RandomRegular {
    seed: u64,
    degree: usize,
}

impl RandomRegular {
    /// All peers of a run need the same seed.
    pub const fn new(seed: u64, degree: usize) -> Self {
        Self { seed, degree }
    }
}

impl Topology for RandomRegular {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let share = 1.0 / (1 + self.degree) as f64;
        let mut send: Vec<(usize, f64)> = Vec::with_capacity(self.degree);
        for matching in 0..self.degree as u64 {
            let mut rng = draw::stream(self.seed, matching);
            let Some(other) = draw::matched(&mut rng, rank, count) else {
                continue;
            };
            match send.iter_mut().find(|(to, _)| *to == other) {
                Some((_, sum)) => *sum += share,
                None => send.push((other, share)),
            }
        }
        symmetric(send)
    }
}
