//! A topology's entry in the list of topologies, and a topology as data, from
//! `architecture.topology` and its keys.

use crate::kind::Kind;
use crate::parameter::{Parameter, Range};
use murmurate_protocol::Topology;
use serde::{Serialize, Serializer};

/// One topology as the configuration knows it. It stands beside the topology's code, and
/// `TOPOLOGIES` lists all.
#[derive(Clone, Copy, Debug)]
pub struct TopologySpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// Its mixing matrix W, in a line.
    pub equation: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters, as keys of `[architecture]`.
    pub parameters: &'static [Parameter],
    /// Set where W is symmetric in every round: a peer that another one pushes to pushes back.
    pub symmetric: bool,
    /// Set where, in round 0, every rank but 0 has a neighbour below it and none has many: its graph
    /// has a spanning tree along which sums can travel.
    pub spans: bool,
    /// Set where each round draws new pairs among all peers, so that every peer meets every other.
    pub random_pairs: bool,
    /// Makes it from parameters within their ranges and a seed.
    pub build: fn(&TopologyKind, u64) -> Box<dyn Topology>,
}

impl TopologySpec {
    /// An entry with a symmetric W that spans no tree and draws no pairs, without parameters. Each topology adds its
    /// name and its texts, and replaces what differs.
    pub(super) const fn symmetric(build: fn(&TopologyKind, u64) -> Box<dyn Topology>) -> Self {
        Self {
            name: "",
            summary: "",
            equation: "",
            source: "",
            parameters: &[],
            symmetric: true,
            spans: false,
            random_pairs: false,
            build,
        }
    }
}

/// Peers of an island: of a topology, or of a schedule with islands.
pub(crate) const ISLAND: Parameter =
    Parameter::new("group", Range::Whole(2, 64), 4.0, "peers of an island");

/// Peers of a group.
pub(super) const GROUP: Parameter = Parameter {
    about: "peers of a group",
    ..ISLAND
};

/// The number of partners, or of what stands for them.
pub(super) const fn degree(default: f64, about: &'static str) -> Parameter {
    Parameter::new("degree", Range::Whole(1, 64), default, about)
}

/// A topology with its parameters, all within their ranges: who pushes to whom in a round.
pub type TopologyKind = Kind<TopologySpec>;

impl TopologyKind {
    /// The topology itself. All peers of a run must give the same seed; only topologies that draw graphs use it.
    pub fn build(&self, seed: u64) -> Box<dyn Topology> {
        (self.spec().build)(self, seed)
    }
}

/// As its name and the values of its parameters, in the order of its list.
impl Serialize for TopologyKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.name(), self.values()).serialize(serializer)
    }
}
