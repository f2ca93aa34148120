//! Why a simulation ended without a report.

use crate::scenario::ScenarioError;
use murmurate_protocol::Time;
use murmurate_strategies::grid::StrategyError;

/// Why a simulation ended without a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The scenario cannot be read, or is not valid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The strategy cannot work, or does not fit the task.
    #[error("[strategy]: {0}")]
    Strategy(#[from] StrategyError),
    /// The task cannot be built.
    #[error("[task]: {0}")]
    Task(String),
    /// An error of the strategy or the task, in a scenario that was read from a file.
    #[error("{file}:{line}: {reason}")]
    InFile {
        /// The file.
        file: String,
        /// Line of the key in the reason, or of its table.
        line: usize,
        /// The error of the strategy or the task.
        reason: Box<SimError>,
    },
    /// A machine could not resume from its own checkpoint.
    #[error("peer {peer} cannot start from its checkpoint: {reason}")]
    Checkpoint {
        /// The machine.
        peer: usize,
        /// The reason.
        reason: String,
    },
    /// An invariant is broken.
    #[error(transparent)]
    Violation(Box<Violation>),
    /// The scenario's virtual time or number of events is used up.
    #[error(
        "peers {unfinished:?} had not finished after {virtual_s:.3} virtual seconds and {events} \
         events (seed {seed}): raise [limits] or look at the trace"
    )]
    Unfinished {
        /// The scenario's seed.
        seed: u64,
        /// Machines with rounds left, at most eight of them.
        unfinished: Vec<usize>,
        /// Virtual time.
        virtual_s: f64,
        /// Events.
        events: u64,
    },
    /// The trace could not be written.
    #[error("trace: {0}")]
    Trace(#[source] std::io::Error),
}

/// A broken invariant with everything that is needed to reproduce it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, {at}, peer {peer}: {what}\n  {}", trace.join("\n  "))]
pub struct Violation {
    /// The scenario's seed.
    pub seed: u64,
    /// Virtual time.
    pub at: Time,
    /// The machine whose input broke the invariant.
    pub peer: usize,
    /// A description of the broken invariant.
    pub what: String,
    /// The last inputs and outputs of the swarm, oldest first.
    pub trace: Vec<String>,
}
