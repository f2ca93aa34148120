//! Simulates a swarm in virtual time, with the same Peer and the same Executor as the daemon.
//!
//! A [`Scenario`] describes the machines, their network, their task and the faults.
//! [`run_scenario`] runs it and returns a [`Report`]. The simulator reads no clock, opens no socket
//! and starts no thread, so a run is reproducible: the same seed, binary and machine give the same
//! trace hash. Invariants are checked after every input of every peer.
//!
//! # Layout
//! - `queue`: the calendar, events by time and then by insertion.
//! - `net`: latency, shared bandwidth, loss, transports, sites, links, partitions.
//! - `recipe`, `host`: build machines; the only files that construct a Peer or an Executor.
//!   `timing`: the work of a machine without tensors.
//! - `swarm` with `link`, `transfer`, `work`: the event loop.
//! - `fault`: the faults. `invariants`: what must hold in spite of them.
//! - `replay`: repeats the recording of a daemon's peer.
//! - `scenario`: reads TOML. `report`, `trace`: the results.
//! - [`seeds`]: random scenarios.
//! - [`compare`]: compares presets on several tasks and networks.
//! - [`equal`]: compares strategies at equal samples, bytes and seconds.
//! - [`plan`]: predicts what each preset achieves on a cluster.

pub mod compare;
mod data;
mod due;
pub mod equal;
mod error;
mod fault;
mod flight;
mod host;
mod invariants;
mod lane;
mod link;
mod net;
pub mod plan;
mod queue;
mod random;
mod recipe;
mod replay;
mod report;
mod run;
mod samples;
mod scenario;
pub mod seeds;
mod sign;
mod speed;
mod stores;
mod swarm;
mod task;
mod timing;
mod trace;
mod transfer;
mod work;

pub use data::DataReport;
pub use error::{SimError, Violation};
pub use fault::{Effect, Fault, Lie, When};
pub use net::Transport;
pub use replay::{ReplayDifference, ReplayError, ReplayReport, replay_file};
pub use report::{Counters, FaultNote, Report, Sample, consensus_distance};
pub use run::{RunOptions, run_file, run_scenario};
pub use scenario::{
    Change, ComputeSpec, DataSpec, Distance, Labels, Limits, NetworkSpec, PEERS_MAX, Scenario,
    ScenarioError, SiteSpec, TaskSpec,
};
pub use task::{ToyTasksOnly, TrainerFactory, TrainerRequest};
