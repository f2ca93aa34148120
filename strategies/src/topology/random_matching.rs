//! Topology `random-matching`: new pairs in every round, which all peers compute without messages.

use super::TopologySpec;
use super::draw;
use super::weights::symmetric;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
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
