//! Topology `hypercube`: every peer mixes with those whose rank differs in one bit.

use super::TopologySpec;
use super::weights::metropolis;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "hypercube",
    summary: "ranks that differ in one bit",
    equation: "W_ij = 1 / (1 + max(deg i, deg j)) for j = i xor 2^b",
    source: "Trevisan 2016",
    spans: true,
    ..TopologySpec::symmetric(|_, _| Box::new(Hypercube))
};

/// Ranks i and `i xor 2^b` mix, for every bit b of n - 1 for which the other rank is below n, with
/// Metropolis shares.
///
/// Symmetric and doubly stochastic; the same in every round. For `n = 2^d` all degrees are d,
/// shares `1 / (d + 1)`, eigenvalues `1 - 2 k / (d + 1)` for k = 0..=d (binomially often), so the
/// spectral gap is `2 / (d + 1)`. For other n the cube is incomplete but connected (clearing the
/// lowest set bit leads to rank 0). Source: Trevisan, "Lecture notes on graph partitioning,
/// expanders and spectral methods" (2016), chapter on Cayley graphs. n = 2: 1/2 each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hypercube;

impl Topology for Hypercube {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let bits = count.max(1).next_power_of_two().ilog2();
        metropolis(rank, |of| {
            (0..bits)
                .map(|bit| of ^ (1 << bit))
                .filter(|other| *other < count)
                .collect()
        })
    }
}
