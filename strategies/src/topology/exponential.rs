//! Topologies `exponential` and `one-peer-exponential`: pushes over doubling distances, all or one of them a round.

use super::TopologySpec;
use super::weights::circulant;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const EXPONENTIAL: TopologySpec = TopologySpec {
    name: "exponential",
    summary: "pushes over every doubling distance",
    equation: "W_ii = W_{i+2^k,i} = 1/(tau+1), k < tau = ceil(log2 n)",
    source: "Ying et al., NeurIPS 2021",
    symmetric: false,
    spans: true,
    ..TopologySpec::symmetric(|_, _| Box::new(Exponential))
};

/// `W[i][i] = W[i + 2^k][i] = 1 / (tau + 1)` for k in 0..tau, indices modulo n, with
/// `tau = ceil(log2 n)`; the same in every round.
///
/// Doubly stochastic (circulant), not symmetric; tau pushes a round. The spectral gap is
/// `2 / (tau + 1)` for even n, and at least that for odd n. Source: Ying et al., "Exponential graph
/// is provably efficient for decentralized deep training" (NeurIPS 2021), section 3, proposition 1.
/// n = 2: 1/2 each; n = 1: no partner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exponential;

impl Topology for Exponential {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let tau = count.next_power_of_two().ilog2();
        let share = 1.0 / f64::from(tau + 1);
        let shifts: Vec<_> = (0..tau).map(|k| (1usize << k, share)).collect();
        circulant(rank, count, &shifts)
    }
}

pub(super) const ONE_PEER: TopologySpec = TopologySpec {
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
