//! Topologies as data: what `architecture.topology` says.

use super::{Complete, OnePeerExponential, RandomMatching, Ring};
use murmurate_protocol::Topology;
use serde::{Deserialize, Serialize};

/// Who pushes to whom in a round of gossip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// [`Ring`].
    Ring,
    /// [`Complete`].
    Complete,
    /// [`RandomMatching`].
    RandomMatching,
    /// [`OnePeerExponential`].
    OnePeerExponential,
}

impl TopologyKind {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Ring,
        Self::Complete,
        Self::RandomMatching,
        Self::OnePeerExponential,
    ];

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Complete => "complete",
            Self::RandomMatching => "random-matching",
            Self::OnePeerExponential => "one-peer-exponential",
        }
    }

    /// The topology itself. All peers of a run must give the same seed; only `random-matching`
    /// uses it.
    pub fn build(&self, seed: u64) -> Box<dyn Topology> {
        match self {
            Self::Ring => Box::new(Ring),
            Self::Complete => Box::new(Complete),
            Self::RandomMatching => Box::new(RandomMatching::new(seed)),
            Self::OnePeerExponential => Box::new(OnePeerExponential),
        }
    }
}
