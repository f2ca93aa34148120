//! Topologies `equi-static` and `equi-dyn`: pushes over random distances, drawn once or in every round.

use super::draw;
use super::spec::{TopologySpec, degree};
use super::weights::circulant;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const EQUI_STATIC: TopologySpec = TopologySpec {
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

pub(super) const EQUI_DYN: TopologySpec = TopologySpec {
    name: "equi-dyn",
    summary: "one push a round over a random distance",
    equation: "W = (I + A(u)) / 2, u drawn from 1..n for the round, A(u)_{i+u,i} = (n-1)/n, A(u)_ii = 1/n",
    source: "Song et al., NeurIPS 2022",
    symmetric: false,
    ..TopologySpec::symmetric(|_, seed| Box::new(EquiDyn::new(seed)))
};

/// How far a round moves towards the drawn basis graph; 1/2 contracts most.
const ETA: f64 = 0.5;

/// `W = (1 - eta) I + eta A(u)` with `eta = 1/2` and one distance u drawn uniformly from `1..n` for
/// the round, where `A(u)[i + u][i] = (n - 1) / n` and `A(u)[i][i] = 1 / n`, indices modulo n.
///
/// Doubly stochastic (circulant), not symmetric; one push a round. For x of mean zero
/// `E ||W x||^2 <= (1 - 2 eta (1 - eta)) ||x||^2 = ||x||^2 / 2`: a rate that does not depend on n.
/// Source: Song et al., "Communication-efficient topologies for decentralized learning with O(1)
/// consensus rate" (NeurIPS 2022), section 3.2 (OD-EquiDyn, theorem 3). n = 1: no partner.
#[derive(Clone, Copy, Debug)]
pub struct EquiDyn {
    seed: u64,
}

impl EquiDyn {
    /// All peers of a run need the same seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The partners of a round that drew the distance `shift`.
    pub fn at_distance(shift: usize, rank: usize, count: usize) -> Partners {
        let share = ETA * (count.max(1) - 1) as f64 / count.max(1) as f64;
        circulant(rank, count.max(1), &[(shift, share)])
    }
}

impl Topology for EquiDyn {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let mut rng = draw::stream(self.seed, round.0);
        Self::at_distance(1 + draw::below(&mut rng, count - 1), rank, count)
    }
}
