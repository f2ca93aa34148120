//! Topologies: mixing matrices W by round. All are doubly stochastic, so the mean
//! over the peers stays while their distance shrinks.
//!
//! One round of mixing is `x_i <- sum_j W[i][j] x_j`: row i has the shares that peer i receives,
//! column i those that it gives.

mod bandwidth_matching;
mod base_k;
mod draw;
mod equi;
mod exponential;
mod fixed;
mod hierarchical;
mod islands;
mod matcha;
mod matchings;
mod moshpit;
mod null_cascade;
mod random_groups;
mod spec;
mod torus;
mod weights;

pub use bandwidth_matching::BandwidthMatching;
pub use base_k::BaseK;
pub use equi::{EquiDyn, EquiStatic};
pub use exponential::{Exponential, OnePeerExponential};
pub use fixed::{BinaryTree, Complete, Hypercube, Ring, Star};
pub use hierarchical::Hierarchical;
pub use islands::Islands;
pub use matcha::Matcha;
pub use matchings::{RandomMatching, RandomRegular};
pub use moshpit::Moshpit;
pub use null_cascade::NullCascade;
pub use random_groups::RandomGroups;
pub(crate) use spec::ISLAND;
pub use spec::{TopologyKind, TopologySpec};
pub use torus::Torus;

use crate::kind::Spec;
use crate::parameter::{self, Parameters};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// All topologies that a configuration may choose. One line each. Random scenarios are drawn from
/// this list: a new entry goes where its name belongs, and no entry moves.
pub static TOPOLOGIES: &[&TopologySpec] = &[
    &base_k::SPEC,
    &fixed::BINARY_TREE,
    &fixed::COMPLETE,
    &equi::EQUI_DYN,
    &equi::EQUI_STATIC,
    &exponential::EXPONENTIAL,
    &hierarchical::SPEC,
    &fixed::HYPERCUBE,
    &islands::SPEC,
    &matcha::SPEC,
    &moshpit::SPEC,
    &null_cascade::SPEC,
    &exponential::ONE_PEER,
    &matchings::RANDOM_MATCHING,
    &matchings::RANDOM_REGULAR,
    &fixed::RING,
    &fixed::STAR,
    &torus::SPEC,
    &bandwidth_matching::SPEC,
    &random_groups::SPEC,
];

/// The topology of a configuration that names none.
pub static DEFAULT: &TopologySpec = &fixed::RING;

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
