//! The configuration of one daemon: a TOML file, overridden by flags, then checked. A [`Config`]
//! contains only values that are valid as far as one daemon can tell.

mod address;
mod error;
mod load;
mod overrides;
mod raw;
mod template;
mod trainers;
mod watch;

pub use error::{ConfigError, Place};
pub use overrides::{Overrides, TrainerArg, Variable, environment};
pub(crate) use raw::RawRate;
pub use template::{Replace, write_template};
pub(crate) use trainers::IslandConfig;
pub(crate) use watch::{WatchConfig, as_share};

use crate::net::Proxy;
use libp2p::Multiaddr;
use murmurate_net::congestion::{Congestion, Limits};
use murmurate_net::tcp::BulkChoice;
use murmurate_protocol::vitals::DaemonName;
use murmurate_protocol::wire::WireVersions;
use murmurate_protocol::{Digest, RunId, Site};
use murmurate_strategies::grid::Strategy;
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, TaskConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The checked configuration of one daemon.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[run]`: settings that all peers of a run share, and when it begins.
    pub run: RunConfig,
    /// `[task]`: model and data.
    pub task: TaskConfig,
    /// `[shards]`: the part of the data that this daemon trains on.
    pub shards: Shards,
    /// `[strategy]`.
    pub strategy: Strategy,
    /// `[island]`: how many trainers this daemon has.
    pub island: IslandConfig,
    /// `[network]`: addresses and limits.
    pub network: NetworkConfig,
    /// `[daemon]`: settings of this daemon only.
    pub daemon: DaemonConfig,
    /// The same as TOML, with the flags applied: `--show-config` prints it and a checkpoint
    /// contains it.
    pub effective: String,
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The run's name. Peers of a run with another name are refused.
    pub name: String,
    /// Hash of the name. A daemon that enters a closed run replaces it by the run's own.
    pub id: RunId,
    /// Seed for everything that must be equal on all peers.
    pub seed: u64,
    /// Number of rounds; zero means until told to stop.
    pub rounds: u64,
    /// Number of daemons, including this one, that a fresh run waits for.
    pub start_with: usize,
    /// The longest wait for them.
    pub start_wait: Duration,
    /// Model file or folder whose parameters a fresh run starts from; the same bits on all peers.
    pub init: Option<PathBuf>,
    /// Set where everyone who knows the name may take part.
    pub open: bool,
    /// The file of the run's key, for the owner's own daemons.
    pub key: Option<PathBuf>,
}

impl RunConfig {
    /// The id of the open run with this name.
    pub fn id_of(name: &str) -> RunId {
        let text = format!("murmurate run {name}");
        RunId::from_bytes(*Digest::of(text.as_bytes()).as_bytes())
    }
}

/// `[network]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// Addresses to listen on.
    pub listen: Vec<Multiaddr>,
    /// Addresses to announce instead of the listening addresses.
    pub announce: Option<Vec<Multiaddr>>,
    /// Addresses of daemons of the run to dial first.
    pub join: Vec<Multiaddr>,
    /// Looks for peers on the local network.
    pub mdns: bool,
    /// Relays for daemons of the run that cannot be dialled.
    pub relay: bool,
    /// Carries a few links of daemons of the run that cannot reach each other.
    pub carry_links: bool,
    /// The congestion control of QUIC.
    pub congestion: Congestion,
    /// How bulk streams travel.
    pub bulk: BulkChoice,
    /// TCP port of bulk over TLS; `None` takes the number of the UDP port.
    pub bulk_port: Option<u16>,
    /// Through which TCP connections to other machines go.
    pub proxy: Option<Proxy>,
    /// The largest UDP payload that is tried; `None` leaves it to the route.
    pub payload_max: Option<u16>,
    /// The versions of the wire that it speaks.
    pub wire: WireVersions,
    /// The label of this daemon's site, if it is not to be measured.
    pub site: Option<Site>,
    /// Hard limits on bytes sent per second.
    pub max_rate: Limits,
}

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonConfig {
    /// Directory of identity, lock and checkpoint.
    pub dir: PathBuf,
    /// The name under which others show it.
    pub name: Option<DaemonName>,
    /// Set where it tells others how it is.
    pub share_vitals: bool,
    /// Address of the HTTP server.
    pub http: SocketAddr,
    /// Host names under which the HTTP server answers, beside addresses and `localhost`.
    pub http_names: Vec<String>,
    /// Time between checkpoints; `None` writes one only at the end.
    pub save_every: Option<Duration>,
    /// Rounds between evaluations on held-out data; zero evaluates only at the end. `None` evaluates after each
    /// round, as long as that takes little of the time.
    pub evaluate_every: Option<u64>,
    /// Stays after the last round, so that late peers can fetch the result, until told to leave.
    pub stay: bool,
    /// Device that trains.
    pub device: DeviceChoice,
    /// Its reasons to leave by itself, and its records of the run.
    pub watch: WatchConfig,
}

impl Config {
    /// The effective configuration without what concerns this machine only: addresses, directories
    /// and whatever the daemon does here. What `export` and `eval` rebuild the model from, and what
    /// the plan depends on, stays.
    pub fn portable(&self) -> String {
        let mut table: toml::Table = toml::from_str(&self.effective).unwrap_or_default();
        table.retain(|name, _| ["run", "task", "shards", "strategy"].contains(&name));
        // Questions are asked here only.
        if let Some(task) = table.get_mut("task").and_then(toml::Value::as_table_mut) {
            task.remove("choices");
        }
        if let Some(run) = table.get_mut("run").and_then(toml::Value::as_table_mut) {
            run.retain(|name, _| ["name", "seed", "rounds"].contains(&name));
        }
        toml::to_string(&table).unwrap_or_default()
    }

    /// One thread of this process trains, on the processor. Ranks of an island have threads of their own.
    pub fn trains_here(&self) -> bool {
        let attached = matches!(self.task, TaskConfig::Attached(_));
        !attached && self.island.ranks == 1 && self.daemon.device.in_place()
    }
}
