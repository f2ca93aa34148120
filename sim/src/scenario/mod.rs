//! A scenario: machines, network, task, strategy and faults, as a TOML file describes them.
//!
//! A constructed [`Scenario`] is valid: every number is in its range and every machine it names
//! exists. Whether the strategy can work is for `strategies` to say.

mod check;
mod error;
mod locate;
mod network;
mod raw;

pub(crate) use check::Checker;
pub use error::ScenarioError;
pub(crate) use locate::line_of;
pub(crate) use raw::explain;

use crate::fault::Fault;
use crate::net::Transport;
use core::ops::Range;
use core::time::Duration;
use murmurate_protocol::Time;
use murmurate_strategies::toy::ToyTask;
use std::path::Path;

/// Machines in one scenario: each peer's view and links take some 100 kB.
pub const PEERS_MAX: usize = 16_384;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, for reports.
    pub name: String,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Machines, those that join late included.
    pub peers: usize,
    /// Rounds that every peer trains.
    pub rounds: u64,
    /// What is learned.
    pub task: TaskSpec,
    /// Preset and grid tables, as `strategies` reads them.
    pub strategy: toml::Table,
    /// Links.
    pub network: NetworkSpec,
    /// Machines' speeds.
    pub compute: ComputeSpec,
    /// Look at loss and consensus distance after every so many rounds.
    pub evaluate_every: u64,
    /// Virtual seconds between checkpoints; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// When to give up.
    pub limits: Limits,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// What is learned.
#[derive(Clone, Debug)]
pub enum TaskSpec {
    /// One of the tasks in plain Rust that `strategies` brings.
    Toy(ToyTask),
    /// Nothing: orders take their time and slices have their size, but there are no tensors.
    Timing {
        /// Parameters of the model that nobody trains.
        parameters: u64,
    },
    /// Anything else: the [`TrainerFactory`](crate::TrainerFactory) makes its trainers from the
    /// rest of the table.
    Factory {
        /// The task's kind as the file names it.
        kind: String,
        /// The rest of the table.
        options: toml::Table,
    },
}

/// Links of machines, and what differs between them.
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// One way, where nothing else is said.
    pub latency: Duration,
    /// At most so much on top, uniformly.
    pub jitter: Duration,
    /// Bytes per second that a machine sends; `None` for no limit.
    pub uplink: Option<f64>,
    /// Bytes per second that a machine receives; `None` for no limit.
    pub downlink: Option<f64>,
    /// Probability that a message, or an attempt at a slice, is lost.
    pub loss: f64,
    /// Probability that a packet is lost and sent again: slower, but nothing is missing.
    pub packet_loss: f64,
    /// What connecting and starting up cost.
    pub transport: Transport,
    /// After this time without an acknowledgement a push is known to be lost.
    pub retry: Duration,
    /// How long a silent machine's links stay up at the others.
    pub detection: Duration,
    /// How many machines each one dials by itself at its start.
    pub bootstrap: usize,
    /// Machines that are near each other.
    pub sites: Vec<SiteSpec>,
    /// How far sites are apart.
    pub between: Vec<Distance>,
    /// How far two machines are apart, whatever their sites.
    pub pairs: Vec<Distance>,
    /// Capacities that change.
    pub changes: Vec<Change>,
}

/// Two machines or sites, and how far they are apart, one way.
pub type Distance = ((usize, usize), Duration);

/// Machines that are near each other and share what leads to all others.
#[derive(Clone, Debug)]
pub struct SiteSpec {
    /// Which; no machine is in two sites.
    pub peers: Range<usize>,
    /// Between two of them, one way.
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

/// A machine's links carry something else from a time on.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Which machine.
    pub peer: usize,
    /// From when.
    pub at: Time,
    /// Bytes per second that it sends; `None` for as before.
    pub uplink: Option<f64>,
    /// Bytes per second that it receives; `None` for as before.
    pub downlink: Option<f64>,
}

/// Machines' speeds.
#[derive(Clone, Debug)]
pub struct ComputeSpec {
    /// Seconds of one inner step on a machine of speed one.
    pub step: Duration,
    /// Speeds, dealt out to the machines in turn; empty for one everywhere.
    pub speeds: Vec<f64>,
    /// Each machine's speed is divided by a uniform draw from `[1, 1 + spread]`.
    pub spread: f64,
    /// Standard deviation of the logarithm of a machine's slowness as it drifts; zero for none.
    pub drift: f64,
    /// Seconds over which the drift forgets a factor of e of where it was.
    pub drift_time: f64,
    /// Seconds that the mix lane takes for one value of a fragment; zero for none at all.
    pub mix_seconds_per_value: f64,
}

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Virtual time.
    pub time: Duration,
    /// Events.
    pub events: u64,
}

impl Scenario {
    /// Machines that are not there at the start.
    pub(crate) fn late_peers(&self) -> usize {
        self.faults
            .iter()
            .filter(|fault| matches!(fault, Fault::Join { .. }))
            .count()
    }

    /// Whether there are no tensors.
    pub(crate) const fn is_timing_only(&self) -> bool {
        matches!(self.task, TaskSpec::Timing { .. })
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// One line that names the file, the key, and what to do.
    pub fn from_file(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.display().to_string(),
            source,
        })?;
        let stem = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Self::from_toml(&text, &path.display().to_string(), &stem)
    }

    /// Reads a scenario from text; `file` is what errors call it.
    ///
    /// # Errors
    /// As [`Scenario::from_file`].
    pub fn from_toml(text: &str, file: &str, name: &str) -> Result<Self, ScenarioError> {
        raw::parse(text, file, name)
    }
}
