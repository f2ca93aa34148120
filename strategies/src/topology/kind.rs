//! Topologies as data: what `architecture.topology` says. Ranges are checked by the grid.

use super::{
    BaseK, BinaryTree, Complete, EquiDyn, EquiStatic, Exponential, Hierarchical, Hypercube,
    Islands, Matcha, Moshpit, NullCascade, OnePeerExponential, RandomMatching, RandomRegular, Ring,
    Star, Torus,
};
use murmurate_protocol::Topology;
use serde::{Deserialize, Serialize};

/// Who pushes to whom in a round of gossip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// [`BaseK`].
    BaseK {
        /// Partners a round, at most.
        degree: usize,
    },
    /// [`BinaryTree`].
    BinaryTree,
    /// [`Complete`].
    Complete,
    /// [`EquiDyn`].
    EquiDyn,
    /// [`EquiStatic`].
    EquiStatic {
        /// Distances.
        degree: usize,
    },
    /// [`Exponential`].
    Exponential,
    /// [`Hierarchical`].
    Hierarchical {
        /// Peers of an island.
        group: usize,
    },
    /// [`Hypercube`].
    Hypercube,
    /// [`Islands`].
    Islands {
        /// Peers of an island.
        group: usize,
        /// In one of so many rounds islands mix with each other.
        every: u64,
    },
    /// [`Matcha`].
    Matcha {
        /// Share of the torus's edges in force in a round, in (0, 1].
        budget: f64,
    },
    /// [`Moshpit`].
    Moshpit {
        /// Peers of a group.
        group: usize,
    },
    /// [`NullCascade`].
    NullCascade,
    /// [`OnePeerExponential`].
    OnePeerExponential,
    /// [`RandomMatching`].
    RandomMatching,
    /// [`RandomRegular`].
    RandomRegular {
        /// Matchings.
        degree: usize,
    },
    /// [`Ring`].
    Ring,
    /// [`Star`].
    Star,
    /// [`Torus`].
    Torus,
}

impl TopologyKind {
    /// All of them, with the parameters that a configuration need not give.
    pub const ALL: [Self; 18] = [
        Self::BaseK { degree: 1 },
        Self::BinaryTree,
        Self::Complete,
        Self::EquiDyn,
        Self::EquiStatic { degree: 4 },
        Self::Exponential,
        Self::Hierarchical { group: 4 },
        Self::Hypercube,
        Self::Islands { group: 4, every: 4 },
        Self::Matcha { budget: 0.5 },
        Self::Moshpit { group: 4 },
        Self::NullCascade,
        Self::OnePeerExponential,
        Self::RandomMatching,
        Self::RandomRegular { degree: 4 },
        Self::Ring,
        Self::Star,
        Self::Torus,
    ];

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BaseK { .. } => "base-k",
            Self::BinaryTree => "binary-tree",
            Self::Complete => "complete",
            Self::EquiDyn => "equi-dyn",
            Self::EquiStatic { .. } => "equi-static",
            Self::Exponential => "exponential",
            Self::Hierarchical { .. } => "hierarchical",
            Self::Hypercube => "hypercube",
            Self::Islands { .. } => "islands",
            Self::Matcha { .. } => "matcha",
            Self::Moshpit { .. } => "moshpit",
            Self::NullCascade => "null-cascade",
            Self::OnePeerExponential => "one-peer-exponential",
            Self::RandomMatching => "random-matching",
            Self::RandomRegular { .. } => "random-regular",
            Self::Ring => "ring",
            Self::Star => "star",
            Self::Torus => "torus",
        }
    }

    /// Whether W is symmetric in every round: whoever one pushes to also pushes back.
    pub const fn symmetric(&self) -> bool {
        !matches!(
            self,
            Self::EquiDyn
                | Self::EquiStatic { .. }
                | Self::Exponential
                | Self::NullCascade
                | Self::OnePeerExponential
        )
    }

    /// The topology itself. All peers of a run must give the same seed; only those that draw graphs
    /// use it.
    pub fn build(&self, seed: u64) -> Box<dyn Topology> {
        match *self {
            Self::BaseK { degree } => Box::new(BaseK::new(degree)),
            Self::BinaryTree => Box::new(BinaryTree),
            Self::Complete => Box::new(Complete),
            Self::EquiDyn => Box::new(EquiDyn::new(seed)),
            Self::EquiStatic { degree } => Box::new(EquiStatic::new(seed, degree)),
            Self::Exponential => Box::new(Exponential),
            Self::Hierarchical { group } => Box::new(Hierarchical::new(group)),
            Self::Hypercube => Box::new(Hypercube),
            Self::Islands { group, every } => Box::new(Islands::new(group, every)),
            Self::Matcha { budget } => Box::new(Matcha::new(seed, budget)),
            Self::Moshpit { group } => Box::new(Moshpit::new(group)),
            Self::NullCascade => Box::new(NullCascade),
            Self::OnePeerExponential => Box::new(OnePeerExponential),
            Self::RandomMatching => Box::new(RandomMatching::new(seed)),
            Self::RandomRegular { degree } => Box::new(RandomRegular::new(seed, degree)),
            Self::Ring => Box::new(Ring),
            Self::Star => Box::new(Star),
            Self::Torus => Box::new(Torus),
        }
    }
}
