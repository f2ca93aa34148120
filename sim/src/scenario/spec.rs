//! A scenario as data. Only `raw` makes one, and it has checked every range by then.

use crate::fault::{Effect, Fault};
use crate::net::Transport;
use core::ops::Range;
use core::time::Duration;
use murmurate_protocol::{Pool, Time};
use murmurate_strategies::toy::ToyTask;
use serde::Deserialize;

/// Most machines of a scenario: each peer's view and links take about 100 kB.
pub const PEERS_MAX: usize = 16_384;

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, for reports.
    pub name: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Machines, including those that join late.
    pub peers: usize,
    /// Rounds that every peer trains.
    pub rounds: u64,
    /// The task.
    pub task: TaskSpec,
    /// Preset and grid tables, as `strategies` reads them.
    pub strategy: toml::Table,
    /// The network.
    pub network: NetworkSpec,
    /// Data that the machines divide, if they do.
    pub data: Option<DataSpec>,
    /// Machines' speeds.
    pub compute: ComputeSpec,
    /// Rounds between measurements of loss and consensus distance.
    pub evaluate_every: u64,
    /// Virtual seconds between checkpoints; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// Limits after which the run fails.
    pub limits: Limits,
    /// The faults.
    pub faults: Vec<Fault>,
}

/// The task.
#[derive(Clone, Debug)]
pub enum TaskSpec {
    /// One of the toy tasks of `strategies`, in plain Rust.
    Toy(ToyTask),
    /// No training: orders take time and slices have sizes, but there are no tensors.
    Timing {
        /// Number of parameters of the assumed model.
        parameters: u64,
    },
    /// Another task: the [`TrainerFactory`](crate::TrainerFactory) builds its trainers from the
    /// rest of the table.
    Factory {
        /// The task's kind in the file.
        kind: String,
        /// The rest of the table.
        options: toml::Table,
    },
}

/// A data set that all machines hold and divide in blocks.
#[derive(Clone, Copy, Debug)]
pub struct DataSpec {
    /// Number of blocks.
    pub blocks: u32,
    /// Samples of a block.
    pub samples: u64,
}

impl DataSpec {
    /// As a peer names it.
    pub(crate) const fn pool(self) -> Pool {
        let (name, blocks) = (1, self.blocks);
        Pool { name, blocks }
    }
}

/// Links of machines, and differences between machines.
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// Default latency, one way.
    pub latency: Duration,
    /// Upper bound of the jitter, which is uniformly distributed.
    pub jitter: Duration,
    /// Bytes per second that a machine sends; `None` for no limit.
    pub uplink: Option<f64>,
    /// Bytes per second that a machine receives; `None` for no limit.
    pub downlink: Option<f64>,
    /// Probability that a message, or an attempt at a slice, is lost.
    pub loss: f64,
    /// Probability that a packet is lost and sent again, which costs time only.
    pub packet_loss: f64,
    /// The transport, which determines the cost of connecting and of slow start.
    pub transport: Transport,
    /// Time after which a push without an acknowledgement is known to be lost.
    pub retry: Duration,
    /// How long a silent machine's links stay up at the others.
    pub detection: Duration,
    /// Machines that each machine dials at its start.
    pub bootstrap: usize,
    /// Set if machines that cannot reach each other get a link through one with which both have one.
    pub relays: bool,
    /// Groups of machines that are close to each other.
    pub sites: Vec<SiteSpec>,
    /// How machines know their sites.
    pub labels: Labels,
    /// Latencies between sites.
    pub between: Vec<Distance>,
    /// Latencies between two machines, whatever their sites.
    pub pairs: Vec<Distance>,
    /// Capacities that change over time.
    pub changes: Vec<Change>,
}

/// How machines know their sites, which their records name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Labels {
    /// Not at all: all are at sites of their own.
    #[default]
    None,
    /// They are configured.
    Configured,
    /// They measure round trips.
    Measured,
}

/// Two machines or sites and the latency between them, one way.
pub type Distance = ((usize, usize), Duration);

/// Machines that are close to each other and share their links to all others.
#[derive(Clone, Debug)]
pub struct SiteSpec {
    /// Its name.
    pub name: String,
    /// The machines. No machine is in two sites.
    pub peers: Range<usize>,
    /// Latency between two of them, one way.
    pub latency: Option<Duration>,
    /// Bytes per second that each of them sends.
    pub uplink: Option<f64>,
    /// Bytes per second that each of them receives.
    pub downlink: Option<f64>,
    /// Bytes per second that all of them together send to others.
    pub wan_uplink: Option<f64>,
    /// Bytes per second that all of them together receive from others.
    pub wan_downlink: Option<f64>,
}

/// A change of the capacity of a machine's links.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The machine.
    pub peer: usize,
    /// The time of the change.
    pub at: Time,
    /// Bytes per second that it sends; `None` for no change.
    pub uplink: Option<f64>,
    /// Bytes per second that it receives; `None` for no change.
    pub downlink: Option<f64>,
}

/// Machines' speeds.
#[derive(Clone, Debug)]
pub struct ComputeSpec {
    /// Seconds of one inner step on a machine of speed one.
    pub step: Duration,
    /// Speeds, assigned to the machines in turn; empty for one everywhere.
    pub speeds: Vec<f64>,
    /// Each machine's speed is divided by a uniform draw from `[1, 1 + spread]`.
    pub spread: f64,
    /// Standard deviation of the logarithm of a machine's slowness; zero for no drift.
    pub drift: f64,
    /// Time constant of the drift in seconds.
    pub drift_time: f64,
    /// Seconds that the mix lane takes for one value of a fragment.
    pub mix_seconds_per_value: f64,
}

/// Limits after which the run fails.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Virtual time.
    pub time: Duration,
    /// Events.
    pub events: u64,
}

impl Scenario {
    /// Machines that are absent at the start.
    pub(crate) fn late_peers(&self) -> usize {
        self.faults
            .iter()
            .filter(|fault| fault.effect == Effect::Join)
            .count()
    }

    /// Set for a scenario without tensors.
    pub(crate) const fn is_timing_only(&self) -> bool {
        matches!(self.task, TaskSpec::Timing { .. })
    }
}
