//! Topology `binary-tree`: every peer mixes with its parent and its children.

use super::TopologySpec;
use super::weights::metropolis;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
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
pub(super) fn neighbours(rank: usize, count: usize) -> Vec<usize> {
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
