//! Topology `one-peer-exponential`: one push a round, over doubling distances.

use super::TopologySpec;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "one-peer-exponential",
    summary: "one push a round over doubling distances",
    equation: "W_ii = W_{i+2^(r mod tau),i} = 1/2, tau = ceil(log2 n)",
    source: "Ying et al., NeurIPS 2021",
    symmetric: false,
    ..TopologySpec::symmetric(|_, _| Box::new(OnePeerExponential))
};

/// `W[i][i] = 1/2` and `W[i + 2^(r mod tau)][i] = 1/2`, indices modulo n, in round r, with
/// `tau = ceil(log2 n)`.
///
/// Doubly stochastic, not symmetric: a peer pushes to one and hears from another. For n = 2^tau the
/// product over tau consecutive rounds is exactly the mean, `(1/n) 1 1^T`; for other n it is not.
/// Source: Ying et al., "Exponential graph is provably efficient for decentralized deep training"
/// (NeurIPS 2021), section 4 (periodic exact averaging). n = 1: no partner.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnePeerExponential;

impl Topology for OnePeerExponential {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let tau = u64::from(count.next_power_of_two().ilog2());
        let distance = 1usize << (round.0 % tau);
        Partners {
            send: vec![((rank + distance) % count, 0.5)],
            receive: vec![(rank + count - distance) % count],
        }
    }
}
