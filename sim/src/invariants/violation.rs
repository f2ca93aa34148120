//! An invariant that did not hold.

use murmurate_protocol::Time;

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
    /// What is wrong.
    pub what: String,
    /// The last inputs and outputs of the swarm, oldest first.
    pub trace: Vec<String>,
}
