//! A merge in the report of a local swarm.

use serde::Serialize;

/// A merge of the sides of a swarm that was split.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MergeEntry {
    /// The round that merged them.
    pub round: u64,
    /// The sides, each with its members in the merge and its weight.
    pub sides: Vec<(u16, f64)>,
}
