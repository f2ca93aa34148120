//! Topology `moshpit`: the mean of a small group, a different one along each axis of a grid.

use super::spec::{GROUP, TopologySpec};
use super::weights::mean;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "moshpit",
    summary: "means of small groups along a grid's axes",
    equation: "W_ij = 1/M for ranks that differ only along axis r mod d of a grid of side M, d = ceil(log_M n)",
    source: "Ryabinin et al., NeurIPS 2021",
    parameters: &[GROUP],
    ..TopologySpec::symmetric(|kind, _| Box::new(Moshpit::new(kind.count("group"))))
};

/// Ranks are points of a d-dimensional grid of side M, `d = ceil(log_M n)`; in round r every peer
/// takes the mean of those that differ from it only along axis `r mod d`.
///
/// Symmetric and doubly stochastic; at most M - 1 pushes a round. For `n = M^d` the product of d
/// rounds is exactly the mean; where the grid is not full the groups differ in size and the mean is
/// approached at a constant rate. Source: Ryabinin et al., "Moshpit SGD: communication-efficient
/// decentralized training on heterogeneous unreliable devices" (NeurIPS 2021), algorithm 1 and
/// section 3.2. Special case: `M >= n` is [`Complete`](super::Complete).
#[derive(Clone, Copy, Debug)]
pub struct Moshpit {
    group: usize,
}

impl Moshpit {
    /// Groups of at most `group` peers, at least two.
    pub const fn new(group: usize) -> Self {
        Self {
            group: if group < 2 { 2 } else { group },
        }
    }

    /// Axes of the grid for `count` peers.
    pub fn axes(&self, count: usize) -> u64 {
        let (mut axes, mut size) = (1, self.group);
        while size < count {
            size = size.saturating_mul(self.group);
            axes += 1;
        }
        axes
    }
}

impl Topology for Moshpit {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        let axis = (round.0 % self.axes(count)) as u32;
        let stride = self.group.saturating_pow(axis);
        let origin = rank - rank / stride % self.group * stride;
        let line = (0..self.group).map(|place| origin + place * stride);
        mean(rank, line.filter(|other| *other < count))
    }
}
