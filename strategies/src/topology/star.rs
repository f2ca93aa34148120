//! Topology `star`: one hub mixes with all others.

use super::TopologySpec;
use super::weights::metropolis;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "star",
    summary: "one hub with all others",
    equation: "W_0j = W_j0 = W_00 = 1/n, W_jj = 1 - 1/n",
    source: "Ying et al., NeurIPS 2021",
    ..TopologySpec::symmetric(|_, _| Box::new(Star))
};

/// Rank 0 and every other rank: `W[0][j] = W[j][0] = 1/n`, `W[0][0] = 1/n`, `W[j][j] = 1 - 1/n`.
///
/// Symmetric and doubly stochastic (Metropolis shares); the same in every round. Eigenvalues 1,
/// `1 - 1/n` (n - 2 times) and 0, so the spectral gap is `1/n`. The hub pushes n - 1 times in each
/// round, like a central server. Source: the star in Ying et al., "Exponential graph is provably
/// efficient for decentralized deep training" (NeurIPS 2021), table 1. n = 2: 1/2 each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Star;

impl Topology for Star {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        metropolis(rank, |of| match of {
            0 => (1..count).collect(),
            _ => vec![0],
        })
    }
}
