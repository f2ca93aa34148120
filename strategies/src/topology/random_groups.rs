//! Topology `random-groups`: new small groups in every round, which all peers compute without messages.

use super::draw;
use super::spec::{GROUP, TopologySpec};
use super::weights::mean;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "random-groups",
    summary: "the mean of a random group, other groups in every round",
    equation: "W_ij = 1/g for the g peers of a random group of the round, ceil(n / group) groups whose sizes differ by at most one",
    source: "Luo et al., ASPLOS 2020 (Prague)",
    parameters: &[GROUP],
    ..TopologySpec::symmetric(|kind, seed| Box::new(RandomGroups::new(kind.count("group"), seed)))
};

/// A uniformly random partition of the peers into `ceil(n / group)` groups in each round; every peer
/// takes the mean of its group.
///
/// Symmetric and doubly stochastic, and a projection: W W = W. At most group - 1 pushes a peer and
/// round. With equal groups of g of n peers the squared distance from the mean shrinks to `(n - g) /
/// (g (n - 1))` of itself in expectation. Groups are runs of a shuffle (Fisher-Yates) drawn from
/// ChaCha8 with the seed as key and the round as stream, so all peers that know the seed, the round
/// and n draw the same groups and no group shares a peer with another: the conflicts that Prague's
/// group generator serializes cannot arise. Source: Luo, He, Zhuo, Qian 2020, "Prague:
/// high-performance heterogeneity-aware asynchronous decentralized training" (ASPLOS), section 4,
/// random groups; there a generator forms them among the workers that are idle, here the round
/// does. Special cases: groups of two are pairs as in [`RandomMatching`](super::RandomMatching);
/// `group >= n` is [`Complete`](super::Complete).
#[derive(Clone, Copy, Debug)]
pub struct RandomGroups {
    group: usize,
    seed: u64,
}

impl RandomGroups {
    /// Groups of at most `group` peers, at least two. All peers of a run need the same seed.
    pub const fn new(group: usize, seed: u64) -> Self {
        Self {
            group: if group < 2 { 2 } else { group },
            seed,
        }
    }
}

impl Topology for RandomGroups {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        let order = draw::shuffled(&mut draw::stream(self.seed, round.0), count);
        let groups = count.div_ceil(self.group).max(1);
        let place = order.iter().position(|at| *at == rank);
        let own = place.map_or(0, |place| place % groups);
        let members = order.iter().skip(own).step_by(groups);
        mean(rank, members.copied())
    }
}
