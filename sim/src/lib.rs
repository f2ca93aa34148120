//! The same Peer and the same Executor as the daemon's, in virtual time.
//!
//! A [`Scenario`] says how many machines there are, how their network is, what they train and what
//! goes wrong; [`run_scenario`] plays it and gives a [`Report`]. Nothing here reads a clock, opens
//! a socket or starts a thread, so a run repeats to the bit: same seed, same binary, same machine,
//! same trace hash. Invariants are checked after every input of every peer.
//!
//! # Layout
//! - `queue`: the calendar, a heap of (time, sequence).
//! - `net`: latency, shared bandwidth, loss, transports, sites, links, partitions.
//! - `recipe`, `host`: how machines are made, and one of them: the only seam to `protocol` and
//!   `strategies`. `timing`: the work of one without tensors.
//! - `swarm` with `feed`, `link`, `transfer`, `fetch`, `work`: the event loop.
//! - `fault`: what goes wrong. `invariants`: what must hold nevertheless.
//! - `replay`: the record of one daemon's peer, once more.
//! - `scenario`: TOML in. `report`, `trace`: what comes out.
//! - [`seeds`]: random scenarios by the hundred.
//! - [`compare`]: presets beside each other on several tasks and networks.
//! - [`plan`]: what each preset would make of a cluster.

mod backward;
pub mod compare;
mod drift;
mod due;
mod error;
mod fault;
mod feed;
mod fetch;
mod host;
mod invariants;
mod lines;
mod link;
mod names;
mod net;
pub mod plan;
mod queue;
mod random;
mod recipe;
mod replay;
mod report;
mod run;
mod scenario;
pub mod seeds;
mod speed;
mod stores;
mod swarm;
mod task;
mod timing;
mod trace;
mod transfer;
mod work;

pub use error::SimError;
pub use fault::{Fault, Lie, When};
pub use invariants::Violation;
pub use net::Transport;
pub use replay::{ReplayDifference, ReplayError, ReplayReport, replay_file};
pub use report::{Counters, FaultNote, Report, Sample, consensus_distance};
pub use run::{RunOptions, run_file, run_scenario};
pub use scenario::{
    Change, ComputeSpec, Distance, Limits, NetworkSpec, PEERS_MAX, Scenario, ScenarioError,
    SiteSpec, TaskSpec,
};
pub use task::{ToyTasksOnly, TrainerFactory, TrainerRequest};
