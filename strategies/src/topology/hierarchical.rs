//! Topology `hierarchical`: islands average internally, and mix with each other through one peer each.

use super::Ring;
use super::spec::{ISLAND, TopologySpec};
use super::weights::{mean, symmetric};
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "hierarchical",
    summary: "islands that agree within, a ring between",
    equation: "even rounds: the mean of the island; odd rounds: the islands' first ranks on a ring, 1/3 each",
    source: "Lin et al., ICLR 2020",
    parameters: &[ISLAND],
    ..TopologySpec::symmetric(|kind, _| Box::new(Hierarchical::new(kind.count("group"))))
};

/// Islands are runs of `group` ranks. In even rounds every peer takes the mean of its island; in
/// odd rounds the first ranks of the islands mix on a ring with 1/3 each and all others rest.
///
/// Symmetric and doubly stochastic in every round. Only one peer of each island uses the links
/// between islands, every second round. Source: hierarchical local SGD in Lin et al., "Don't use
/// large mini-batches, use local SGD" (ICLR 2020), section 5, with gossip between islands. Special
/// cases: one island is the mean in every second round; islands of one are [`Ring`] then.
#[derive(Clone, Copy, Debug)]
pub struct Hierarchical {
    group: usize,
}

impl Hierarchical {
    /// Islands of `group` ranks, the last may be smaller; at least one.
    pub const fn new(group: usize) -> Self {
        Self {
            group: if group == 0 { 1 } else { group },
        }
    }
}

impl Topology for Hierarchical {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        let first = rank - rank % self.group;
        if round.0.is_multiple_of(2) {
            return mean(rank, first..(first + self.group).min(count));
        }
        if rank != first {
            return Partners::default();
        }
        let islands = count.div_ceil(self.group);
        let ring = Ring.partners(round, rank / self.group, islands);
        symmetric(
            ring.send
                .into_iter()
                .map(|(island, share)| (island * self.group, share))
                .collect(),
        )
    }
}
