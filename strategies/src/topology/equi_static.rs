//! Topology `equi-static`: a few random distances, drawn once.

use super::draw;
use super::spec::{TopologySpec, degree};
use super::weights::circulant;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "equi-static",
    summary: "a few random distances, drawn once",
    equation: "W = (1/M) sum_m A(u_m), u_m drawn once from 1..n, A(u)_{i+u,i} = (n-1)/n, A(u)_ii = 1/n",
    source: "Song et al., NeurIPS 2022",
    parameters: &[degree(4.0, "distances")],
    symmetric: false,
    ..TopologySpec::symmetric(|kind, seed| Box::new(EquiStatic::new(seed, kind.count("degree"))))
};

/// `W = (1/M) sum_{m=1}^M A(u_m)` with M distances `u_m` drawn uniformly from `1..n`, where
/// `A(u)[i + u][i] = (n - 1) / n` and `A(u)[i][i] = 1 / n`, indices modulo n; the same in every
/// round.
///
/// Doubly stochastic (circulant), not symmetric; M pushes a round (fewer where distances coincide).
/// The mean of all A(u) is exactly `(1/n) 1 1^T`, so with `M = Theta(ln n)` the consensus rate does
/// not depend on n. Source: Song et al., "Communication-efficient topologies for decentralized
/// learning with O(1) consensus rate" (NeurIPS 2022), section 3.1 (D-EquiStatic). n = 2: the mean.
#[derive(Clone, Copy, Debug)]
pub struct EquiStatic {
    seed: u64,
    degree: usize,
}

impl EquiStatic {
    /// All peers of a run need the same seed.
    pub const fn new(seed: u64, degree: usize) -> Self {
        Self { seed, degree }
    }
}

impl Topology for EquiStatic {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let mut rng = draw::stream(self.seed, 0);
        let share = (count - 1) as f64 / (count * self.degree.max(1)) as f64;
        let shifts: Vec<_> = (0..self.degree)
            .map(|_| (1 + draw::below(&mut rng, count - 1), share))
            .collect();
        circulant(rank, count, &shifts)
    }
}
