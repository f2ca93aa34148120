//! Topology `ring`: every peer mixes with its two neighbours.

use super::TopologySpec;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
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
