//! The planner's arithmetic: the cost of one round of a strategy on machines and links of known
//! speed. Nothing is simulated or measured here. Bytes come from the plan that peers agree on, time
//! from the link, memory from the stores of a peer.
//!
//! - `link`, `cluster`: the machines that a question is about.
//! - `traffic`: bytes of a round, and the slices under way in memory; each exchange computes its own.
//! - `groups`: a swarm larger than one group, by rows and columns, in cells or in turns, and
//!   which of these is advised.
//! - `cost`: time, bytes and memory of a round, and what a peer keeps in memory, store by store.

mod cluster;
mod cost;
mod groups;
mod link;
mod traffic;

pub use cluster::{Cluster, ClusterError};
pub use cost::{Cost, stores};
pub use groups::{GridShape, Groups, exact_or_cells};
pub use link::Link;
pub use traffic::{Store, Traffic, UnderWay};
