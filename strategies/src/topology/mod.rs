//! Topologies: mixing matrices W by round. One file each; all are doubly stochastic, so the mean
//! over the peers stays while their distance shrinks.
//!
//! One round of mixing is `x_i <- sum_j W[i][j] x_j`: row i has the shares that peer i receives,
//! column i those that it gives.

mod bandwidth_matching;
mod base_k;
mod binary_tree;
mod complete;
mod draw;
mod equi_dyn;
mod equi_static;
mod exponential;
mod hierarchical;
mod hypercube;
mod islands;
mod matcha;
mod moshpit;
mod null_cascade;
mod one_peer_exponential;
mod random_groups;
mod random_matching;
mod random_regular;
mod ring;
mod spec;
mod spectrum;
mod star;
mod torus;
mod weights;

pub use bandwidth_matching::BandwidthMatching;
pub use base_k::BaseK;
pub use binary_tree::BinaryTree;
pub use complete::Complete;
pub use equi_dyn::EquiDyn;
pub use equi_static::EquiStatic;
pub use exponential::Exponential;
pub use hierarchical::Hierarchical;
pub use hypercube::Hypercube;
pub use islands::Islands;
pub use matcha::Matcha;
pub use moshpit::Moshpit;
pub use null_cascade::NullCascade;
pub use one_peer_exponential::OnePeerExponential;
pub use random_groups::RandomGroups;
pub use random_matching::RandomMatching;
pub use random_regular::RandomRegular;
pub use ring::Ring;
pub use spec::{TopologyKind, TopologySpec};
pub use spectrum::{contraction, eigenvalues};
pub use star::Star;
pub use torus::Torus;

use crate::kind::Spec;
use crate::parameter::{self, Parameters};
use murmurate_protocol::{Round, Topology};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// All topologies that a configuration may choose. One line each. Random scenarios are drawn from
/// this list: a new entry goes where its name belongs, and no entry moves.
pub static TOPOLOGIES: &[&TopologySpec] = &[
    &base_k::SPEC,
    &binary_tree::SPEC,
    &complete::SPEC,
    &equi_dyn::SPEC,
    &equi_static::SPEC,
    &exponential::SPEC,
    &hierarchical::SPEC,
    &hypercube::SPEC,
    &islands::SPEC,
    &matcha::SPEC,
    &moshpit::SPEC,
    &null_cascade::SPEC,
    &one_peer_exponential::SPEC,
    &random_matching::SPEC,
    &random_regular::SPEC,
    &ring::SPEC,
    &star::SPEC,
    &torus::SPEC,
    &bandwidth_matching::SPEC,
    &random_groups::SPEC,
];

/// The topology of a configuration that names none.
pub static DEFAULT: &TopologySpec = &ring::SPEC;

impl TopologyKind {
    /// All of them, with the defaults of their parameters.
    ///
    /// # Panics
    /// If a parameter has no default; a test builds this list.
    pub fn all() -> Vec<Self> {
        let all = TOPOLOGIES.iter().map(|spec| Self::of(spec, &[]));
        all.map(|kind| kind.expect("every parameter of a topology has a default"))
            .collect()
    }
}

impl Spec for TopologySpec {
    const KEY: &'static str = "architecture.topology";

    fn list() -> &'static [&'static Self] {
        TOPOLOGIES
    }

    fn usual() -> &'static Self {
        DEFAULT
    }

    fn keys(&self) -> Parameters {
        Parameters::new("architecture", self.name, self.parameters)
    }
}

impl<'de> Deserialize<'de> for TopologyKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, values): (String, Vec<f64>) = Deserialize::deserialize(deserializer)?;
        let spec = find(&name).ok_or_else(|| D::Error::custom("an unknown topology"))?;
        if values.len() != spec.parameters.len() {
            return Err(D::Error::custom("other parameters than the topology's"));
        }
        let names = spec.parameters.iter().map(|parameter| parameter.name);
        let given: Vec<_> = names.zip(values).collect();
        Self::of(spec, &given).map_err(D::Error::custom)
    }
}

/// The topology of a name.
pub fn find(name: &str) -> Option<&'static TopologySpec> {
    TOPOLOGIES.iter().copied().find(|spec| spec.name == name)
}

/// The names of all parameters of all topologies, sorted.
pub fn parameter_names() -> Vec<&'static str> {
    parameter::names(TOPOLOGIES.iter().map(|spec| spec.parameters))
}

/// The mixing matrix of a round, row by row: `W[j][i]` is the share of i's mass that goes to j. For
/// analysis and tests; peers only ever ask for their own partners.
pub fn mixing_matrix(topology: &dyn Topology, round: Round, count: usize) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; count]; count];
    let sends: Vec<_> = (0..count)
        .map(|rank| topology.partners(round, rank, count).send)
        .collect();
    for (rank, send) in sends.into_iter().enumerate() {
        let kept = 1.0 - send.iter().map(|(_, share)| share).sum::<f64>();
        for (to, share) in send.into_iter().chain([(rank, kept)]) {
            matrix[to][rank] += share;
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [usize; 9] = [1, 2, 3, 4, 5, 7, 8, 16, 33];

    fn multiply(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let n = a.len();
        let entry = |i: usize, j: usize| (0..n).map(|k| a[i][k] * b[k][j]).sum();
        (0..n)
            .map(|i| (0..n).map(|j| entry(i, j)).collect())
            .collect()
    }

    #[test]
    fn rows_and_columns_sum_to_one() {
        for kind in TopologyKind::all() {
            let topology = kind.build(7);
            for count in COUNTS {
                for round in 0..12 {
                    let w = mixing_matrix(&*topology, Round(round), count);
                    for i in 0..count {
                        let row: f64 = w[i].iter().sum();
                        let column: f64 = w.iter().map(|row| row[i]).sum();
                        assert!((row - 1.0).abs() < 1e-12, "{kind:?} n {count} row {row}");
                        assert!((column - 1.0).abs() < 1e-12, "{kind:?} n {count}");
                        assert!(w[i].iter().all(|share| *share >= 0.0));
                        assert!(w[i][i] > 0.0, "{kind:?}: every peer keeps a share");
                    }
                }
            }
        }
    }

    #[test]
    fn every_sender_is_expected() {
        for kind in TopologyKind::all() {
            let topology = kind.build(7);
            for count in COUNTS {
                for round in (0..12).map(Round) {
                    let mut pushed = vec![Vec::new(); count];
                    for rank in 0..count {
                        for (to, _) in topology.partners(round, rank, count).send {
                            assert_ne!(to, rank);
                            pushed[to].push(rank);
                        }
                    }
                    for (rank, from) in pushed.into_iter().enumerate() {
                        assert_eq!(topology.partners(round, rank, count).receive, from);
                    }
                }
            }
        }
    }

    #[test]
    fn one_peer_exponential_is_exact_after_log2_n_rounds() {
        for tau in 1..=5u64 {
            let count = 1usize << tau;
            for first in [0, 3] {
                let product = (first..first + tau)
                    .map(|round| mixing_matrix(&OnePeerExponential, Round(round), count))
                    .reduce(|product, w| multiply(&w, &product))
                    .unwrap();
                // Sums of powers of two: exact.
                assert!(
                    product
                        .iter()
                        .flatten()
                        .all(|share| *share == 1.0 / count as f64)
                );
            }
        }
    }

    #[test]
    fn the_spectral_gap_of_the_ring_is_its_closed_form() {
        for count in [3usize, 5, 8, 16, 33] {
            let w = mixing_matrix(&Ring, Round(0), count);
            // Power iteration from the slowest wave shape plus noise, with the mean taken out.
            let mut x: Vec<f64> = (0..count).map(|i| ((i * i) % 7) as f64 - 2.9).collect();
            let mut growth = 0.0;
            for _ in 0..4000 {
                let mean = x.iter().sum::<f64>() / count as f64;
                x.iter_mut().for_each(|v| *v -= mean);
                let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
                x.iter_mut().for_each(|v| *v /= norm);
                x = w
                    .iter()
                    .map(|row| row.iter().zip(&x).map(|(a, b)| a * b).sum())
                    .collect();
                growth = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            }
            let angle = 2.0 * std::f64::consts::PI / count as f64;
            let expected = (1.0 / 3.0 + 2.0 / 3.0 * angle.cos()).abs();
            assert!(
                (growth - expected).abs() < 1e-9,
                "n {count}: {growth} is not {expected}"
            );
        }
    }

    #[test]
    fn matchings_change_by_round_and_seed_but_not_by_peer() {
        let pairs = |seed, round| {
            let topology = RandomMatching::new(seed);
            (0..9)
                .map(|rank| topology.partners(Round(round), rank, 9).receive)
                .collect::<Vec<_>>()
        };
        assert_eq!(pairs(1, 5), pairs(1, 5));
        assert_ne!(pairs(1, 5), pairs(1, 6));
        assert_ne!(pairs(1, 5), pairs(2, 5));
        assert_eq!(
            pairs(1, 5)
                .iter()
                .filter(|partners| partners.is_empty())
                .count(),
            1
        );
    }

    #[test]
    fn every_pair_is_matched_equally_often() {
        let rounds = 6000u64;
        let mut met = [0u32; 6];
        for round in 0..rounds {
            let partners = RandomMatching::new(3).partners(Round(round), 0, 6);
            met[partners.receive[0]] += 1;
        }
        for count in &met[1..] {
            // 1200 expected, standard deviation 31: five of them.
            assert!(count.abs_diff(1200) < 155, "{met:?}");
        }
    }
}
