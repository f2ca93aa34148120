//! Topology `complete`: every peer mixes with all others.

use super::TopologySpec;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
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
