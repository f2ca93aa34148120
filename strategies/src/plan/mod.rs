//! The planner's arithmetic: the cost of one round of a strategy on machines and links of known
//! speed. Nothing is simulated or measured here. Bytes come from the plan that peers agree on, time
//! from the link, memory from the stores of a peer.
//!
//! - `link`, `cluster`: the machines that a question is about.
//! - `traffic`: bytes of a round; each exchange computes its own.
//! - `rows`, `groups`: a swarm larger than one group, by rows and columns, in cells or in turns.
//! - `exact`: which of these is advised.
//! - `cost`: time, bytes and memory of a round.
//! - `stores`, `under_way`: what a peer keeps in memory, store by store.

mod cluster;
mod cost;
mod exact;
mod groups;
mod link;
mod rows;
mod stores;
mod traffic;
mod under_way;

pub use cluster::{Cluster, ClusterError};
pub use cost::Cost;
pub use exact::exact_or_cells;
pub use groups::Groups;
pub use link::Link;
pub use rows::GridShape;
pub use stores::stores;
pub use traffic::Traffic;
pub use under_way::{Store, UnderWay};
