//! Topology `random-regular`: the union of a few random matchings, drawn once.

use super::draw;
use super::spec::{TopologySpec, degree};
use super::weights::symmetric;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "random-regular",
    summary: "the union of a few random matchings",
    equation: "W = (I + sum_{m <= d} P_m) / (d + 1), P_m random matchings drawn once",
    source: "Friedman, Mem. AMS 2008",
    parameters: &[degree(4.0, "matchings")],
    ..TopologySpec::symmetric(|kind, seed| Box::new(RandomRegular::new(seed, kind.count("degree"))))
};

/// `W = (I + sum_{m=1}^d P_m) / (d + 1)` with d independent uniformly random matchings `P_m`; the
/// same in every round.
///
/// Symmetric and doubly stochastic for any n: a pair that two matchings share weighs twice, and a
/// peer without a partner in one (odd n) keeps that share. For even n this is the matching model of
/// random d-regular graphs, whose second eigenvalue is `2 sqrt(d - 1) / (d + 1) + o(1)` here with
/// high probability: a gap that does not shrink with n for d > 2. Source: Friedman, "A proof of
/// Alon's second eigenvalue conjecture and related problems" (Memoirs of the AMS 2008). Special
/// case: d = 1 is one matching for ever and does not mix beyond its pairs.
#[derive(Clone, Copy, Debug)]
pub struct RandomRegular {
    seed: u64,
    degree: usize,
}

impl RandomRegular {
    /// All peers of a run need the same seed.
    pub const fn new(seed: u64, degree: usize) -> Self {
        Self { seed, degree }
    }
}

impl Topology for RandomRegular {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let share = 1.0 / (1 + self.degree) as f64;
        let mut send: Vec<(usize, f64)> = Vec::with_capacity(self.degree);
        for matching in 0..self.degree as u64 {
            let mut rng = draw::stream(self.seed, matching);
            let Some(other) = draw::matched(&mut rng, rank, count) else {
                continue;
            };
            match send.iter_mut().find(|(to, _)| *to == other) {
                Some((_, sum)) => *sum += share,
                None => send.push((other, share)),
            }
        }
        symmetric(send)
    }
}
