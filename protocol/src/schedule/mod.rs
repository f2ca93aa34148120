//! Schedules: which member sends which shard's partial sums to which other one, and which forwards
//! the aggregate. Data only, made by pure functions of the algorithm, the number of members and a
//! rank. The agreed exchange carries them out (`exchange/agreed/carry_out.rs`).
//!
//! Each algorithm comes with its cost model. All but recursive doubling are trees (`trees`, `doubling`; `packing`
//! has those that `synthesis` finds): every shard's partial sums climb one tree to the shard's owner, and its
//! aggregate descends another. A tree has n - 1 edges whatever its shape, so that all of them send 2 (n - 1) m bytes
//! in all for m bytes of a fragment; they differ in how many steps depend on one another and in who sends most.

mod doubling;
mod islands;
mod ordering;
mod packing;
mod program;
mod rates;
mod shape;
mod solution;
mod synthesis;
mod timeline;
mod trees;

pub use packing::{Packing, PackingCertificate, PackingError};
pub(crate) use program::{Program, Role};
pub(crate) use rates::code_of;
pub use rates::{AgreedLinks, LinkCodes, LinkTable, LinkTableError};
pub use shape::ScheduleCost;
pub(crate) use shape::{
    MEASURED_BYTES_MIN, PUSHES_MEASURED, RESYNTHESIS_PERCENT, SENDS_WAITING_MAX,
};
pub(crate) use solution::Solution;
pub use solution::{Certificate, LinkPlan};

use crate::limits::SYNTHESIZED_TREES_MAX;
use islands::Islands;
use serde::{Deserialize, Serialize};
use shape::Trees;

/// The order in which an all-reduce forms partial sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Schedule {
    /// Every member sends to all owners directly, in two steps.
    #[default]
    Butterfly,
    /// Shards travel around a ring, twice.
    Ring,
    /// Pairs at doubling distances swap whole sums.
    RecursiveDoubling,
    /// Pairs at halving distances swap halves, then at doubling distances hand them on.
    HalvingDoubling,
    /// Up and down one binary tree.
    BinaryTree,
    /// Half of it up and down each of two binary trees, inner nodes of one being leaves of the
    /// other.
    DoubleTree,
    /// Rings along rows and columns.
    Torus,
    /// Members of an island send to its leader; leaders form a ring.
    Hierarchical {
        /// Members of an island.
        island: u16,
    },
    /// Trees that were packed onto measured links.
    Packed(Packing),
    /// As [`Schedule::Hierarchical`], with islands of members of one site.
    Sites {
        /// Members of an island, at most.
        island: u16,
    },
    /// Trees and an order of sends for links that are measured while the run is under way.
    Measured(LinkPlan),
}

impl Schedule {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Butterfly => "butterfly",
            Self::Ring => "ring",
            Self::RecursiveDoubling => "recursive-doubling",
            Self::HalvingDoubling => "halving-doubling",
            Self::BinaryTree => "binary-tree",
            Self::DoubleTree => "double-tree",
            Self::Torus => "torus",
            Self::Hierarchical { .. } | Self::Sites { .. } => "hierarchical",
            Self::Packed(_) | Self::Measured(_) => "synthesized",
        }
    }

    /// Its cost among `members`. A member alone sends nothing.
    pub fn cost(&self, members: usize) -> ScheduleCost {
        if members < 2 {
            return ScheduleCost {
                shards: 1,
                hops: 0,
                pushes: 0,
                busiest: 0,
            };
        }
        match self.trees(members) {
            Some(trees) => trees.cost(members),
            None => doubling::cost(members),
        }
    }

    /// The number of shards of a fragment of `len` values in a group of this size. A fragment with
    /// fewer values than the schedule has shards is cut as by the butterfly: one shard for each
    /// member, as long as there are values.
    pub(crate) fn shards(&self, members: usize, len: u64) -> u64 {
        let shards = match self {
            // Its cost depends on sites, and the number of its shards does not.
            Self::Sites { .. } => members as u64,
            _ => self.cost(members).shards,
        };
        if self.relays() && members > 1 && shards <= len {
            shards
        } else {
            (members as u64).min(len).max(1)
        }
    }

    /// Members pass on what others encoded.
    pub fn relays(&self) -> bool {
        *self != Self::Butterfly
    }

    /// It goes by the sites of the members.
    pub const fn goes_by_sites(&self) -> bool {
        matches!(self, Self::Sites { .. })
    }

    /// What its members know of links, if these are measured while the run is under way.
    pub const fn link_plan(&self) -> Option<&LinkPlan> {
        match self {
            Self::Measured(links) => Some(links),
            _ => None,
        }
    }

    /// Returns `true` if a fragment of `len` values may be cut into this number of shards in a group of this size.
    pub(crate) fn may_cut_into(&self, shards: u64, members: usize, len: u64) -> bool {
        let most = members.max(SYNTHESIZED_TREES_MAX) as u64;
        match self {
            // It depends on the rates of links.
            Self::Measured(_) => (1..=most.min(len.max(1))).contains(&shards),
            _ => shards == self.shards(members, len),
        }
    }

    /// Its trees among `n` members; islands of sites as if no site were known, and those of measured links as
    /// if none were.
    fn trees(&self, n: usize) -> Option<Box<dyn Trees>> {
        Some(match *self {
            Self::Butterfly | Self::Measured(_) => Box::new(trees::Butterfly),
            Self::Ring => Box::new(trees::Ring),
            Self::RecursiveDoubling => return None,
            Self::HalvingDoubling => Box::new(doubling::HalvingDoubling),
            Self::BinaryTree => Box::new(trees::BinaryTree),
            Self::DoubleTree => Box::new(trees::DoubleTree),
            Self::Torus => Box::new(trees::Torus),
            Self::Hierarchical { island } => Box::new(trees::Hierarchical {
                island: usize::from(island.max(1)),
            }),
            Self::Packed(packing) => Box::new(packing),
            Self::Sites { island } => Box::new(Islands::of_ranks(n, usize::from(island))),
        })
    }
}
