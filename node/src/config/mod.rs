//! The configuration of one daemon: a TOML file, then flags over it, then checked values. A
//! [`Config`] that exists is valid as far as one daemon can tell by itself.

mod error;
mod load;
mod overrides;
mod rate;
mod raw;
mod template;

pub use error::{ConfigError, Place};
pub use overrides::Overrides;
pub(crate) use rate::RawRate;
pub use template::{Replace, template, write_template};

use libp2p::Multiaddr;
use murmurate_net::congestion::{Congestion, Limits};
use murmurate_protocol::{Digest, RunId};
use murmurate_strategies::grid::Strategy;
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, TaskConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything one daemon is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// What all peers of a run share, and when it begins.
    pub run: RunConfig,
    /// What is trained.
    pub task: TaskConfig,
    /// Which part of the data is this daemon's.
    pub shards: Shards,
    /// The point of the grid.
    pub strategy: Strategy,
    /// Addresses.
    pub network: NetworkConfig,
    /// This daemon's own business.
    pub daemon: DaemonConfig,
    /// The same in TOML, flags included: what `--show-config` prints and a checkpoint keeps.
    pub effective: String,
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// Its name; peers of other names are strangers.
    pub name: String,
    /// The name's hash.
    pub id: RunId,
    /// Seed of everything that must be equal on all peers.
    pub seed: u64,
    /// Rounds in all; zero means until told to stop.
    pub rounds: u64,
    /// Daemons, this one included, that a fresh run waits for.
    pub start_with: usize,
    /// How long it waits for them.
    pub start_wait: Duration,
    /// Model file or folder whose parameters a fresh run starts from; the same bits on all peers.
    pub init: Option<PathBuf>,
}

impl RunConfig {
    /// The id of the run of this name.
    pub fn id_of(name: &str) -> RunId {
        let text = format!("murmurate run {name}");
        RunId::from_bytes(*Digest::of(text.as_bytes()).as_bytes())
    }
}

/// `[network]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// Where it listens.
    pub listen: Vec<Multiaddr>,
    /// What others are told instead of where it listens.
    pub announce: Option<Vec<Multiaddr>>,
    /// Daemons of the run that it dials first.
    pub join: Vec<Multiaddr>,
    /// Whether it looks for others on the local network.
    pub mdns: bool,
    /// Whether it relays for daemons of the run that cannot be dialled.
    pub relay: bool,
    /// What decides how fast it sends.
    pub congestion: Congestion,
    /// Hard limits on what it sends.
    pub max_rate: Limits,
}

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonConfig {
    /// Its directory: identity, lock, checkpoint.
    pub dir: PathBuf,
    /// Where `/status` and `/metrics` are served.
    pub http: SocketAddr,
    /// How often a checkpoint is written; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// Rounds between evaluations on held data; zero evaluates only at the end.
    pub evaluate_every: u64,
    /// Whether it stays after the last round, for those who come back, until it is told to leave.
    pub stay: bool,
    /// Where it trains.
    pub device: DeviceChoice,
}

impl Config {
    /// Whether this daemon joins a run that others began: it has addresses to join and was not told
    /// to be one of those a fresh run starts with.
    pub fn joins_running(&self) -> bool {
        !self.network.join.is_empty() && self.run.start_with <= 1
    }
}
