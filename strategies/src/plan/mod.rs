//! The planner's arithmetic: what one round of a strategy takes on machines and links of known speed. Nothing is
//! simulated and nothing measured here: bytes come from the plan that peers agree on, time from the link,
//! memory from what a peer keeps.
//!
//! - `link`, `cluster`: what is asked about.
//! - `traffic`: bytes of a round, which each exchange tells of itself.
//! - `cost`: time, bytes and memory of a round.

mod cluster;
mod cost;
mod link;
mod traffic;

pub use cluster::{Cluster, ClusterError};
pub use cost::Cost;
pub use link::Link;
pub use traffic::Traffic;
