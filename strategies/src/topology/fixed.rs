//! Topologies `complete`, `star`, `ring`, `binary-tree` and `hypercube`: graphs that are the same in every round and
//! that a rank alone determines.

use super::TopologySpec;
use super::weights::metropolis;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const COMPLETE: TopologySpec = TopologySpec {
    name: "complete",
    summary: "every peer with all others",
    equation: "W_ij = 1/n",
    source: "the mean",
    ..TopologySpec::symmetric(|_, _| Box::new(Complete))
};

/// `W[i][j] = 1/n` in every round: the exact mean after one, for n - 1 pushes a peer.
///
/// Symmetric and doubly stochastic; all eigenvalues but one are zero, so the spectral gap is 1.
/// Source: the definition of the mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct Complete;

impl Topology for Complete {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let share = 1.0 / count.max(1) as f64;
        let receive: Vec<usize> = (0..count).filter(|other| *other != rank).collect();
        Partners {
            send: receive.iter().map(|to| (*to, share)).collect(),
            receive,
        }
    }
}

pub(super) const STAR: TopologySpec = TopologySpec {
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

pub(super) const RING: TopologySpec = TopologySpec {
    name: "ring",
    summary: "a third each with the two neighbours",
    equation: "W_ii = W_{i+1,i} = W_{i-1,i} = 1/3",
    source: "Lian et al., NeurIPS 2017",
    spans: true,
    ..TopologySpec::symmetric(|_, _| Box::new(Ring))
};

/// `W[i][i] = W[i][i+1] = W[i][i-1] = 1/3`, indices modulo n; the same in every round.
///
/// Symmetric and doubly stochastic. Eigenvalues `1/3 + 2/3 cos(2 pi k / n)`, so the spectral gap is
/// `2/3 (1 - cos(2 pi / n)) = O(1 / n^2)`. n = 2: 1/2 each; n = 1: no partner. Source: Lian et al.,
/// "Can decentralized algorithms outperform centralized algorithms?" (NeurIPS 2017).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring;

impl Topology for Ring {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        match count {
            0 | 1 => Partners::default(),
            2 => Partners {
                send: vec![(1 - rank, 0.5)],
                receive: vec![1 - rank],
            },
            _ => {
                let mut receive = vec![(rank + 1) % count, (rank + count - 1) % count];
                receive.sort_unstable();
                let share = 1.0 / 3.0;
                Partners {
                    send: receive.iter().map(|to| (*to, share)).collect(),
                    receive,
                }
            }
        }
    }
}

pub(super) const BINARY_TREE: TopologySpec = TopologySpec {
    name: "binary-tree",
    summary: "parent and children",
    equation: "W_ij = 1 / (1 + max(deg i, deg j)) along the edges i - (i - 1) / 2",
    source: "Nedic et al., Proc. IEEE 2018",
    spans: true,
    ..TopologySpec::symmetric(|_, _| Box::new(BinaryTree))
};

/// Rank i has the parent `(i - 1) / 2` and the children `2 i + 1`, `2 i + 2` below n; Metropolis
/// shares, so `1/4` for an edge inside the tree and `1/3` or `1/4` to a leaf.
///
/// Symmetric and doubly stochastic; the same in every round; degree at most 3, spectral gap
/// `O(1 / n)`. Source: the tree as a gossip graph in Nedic, Olshevsky and Rabbat, "Network topology
/// and communication-computation tradeoffs in decentralized optimization" (Proceedings of the IEEE
/// 2018), section III. n = 2: 1/2 each; n = 3: the star.
#[derive(Clone, Copy, Debug, Default)]
pub struct BinaryTree;

/// The neighbours of `rank` in the tree of `count`, in ascending order.
fn neighbours(rank: usize, count: usize) -> Vec<usize> {
    let parent = rank.checked_sub(1).map(|above| above / 2);
    let children = [2 * rank + 1, 2 * rank + 2];
    parent
        .into_iter()
        .chain(children.into_iter().filter(|child| *child < count))
        .collect()
}

impl Topology for BinaryTree {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        metropolis(rank, |of| neighbours(of, count))
    }
}

pub(super) const HYPERCUBE: TopologySpec = TopologySpec {
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
