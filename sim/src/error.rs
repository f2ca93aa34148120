//! Why a simulation ended without a report.

use crate::invariants::Violation;
use crate::scenario::ScenarioError;
use murmurate_strategies::grid::StrategyError;

/// Why a simulation ended without a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The scenario cannot be read or cannot be.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The strategy cannot work, or does not fit the task.
    #[error("[strategy]: {0}")]
    Strategy(#[from] StrategyError),
    /// The task cannot be made.
    #[error("[task]: {0}")]
    Task(String),
    /// One of the two, in a scenario that was read from a file.
    #[error("{file}:{line}: {reason}")]
    InFile {
        /// The file.
        file: String,
        /// The line of the key that the reason names, or of its table.
        line: usize,
        /// What the strategy or the task says.
        reason: Box<SimError>,
    },
    /// A machine could not take its own checkpoint back.
    #[error("peer {peer} cannot start from its checkpoint: {reason}")]
    Checkpoint {
        /// Which.
        peer: usize,
        /// Why.
        reason: String,
    },
    /// Something that must always hold did not.
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
