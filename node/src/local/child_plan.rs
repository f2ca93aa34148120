//! What one daemon of a local swarm is told.

use crate::faults::Fault;
use std::path::PathBuf;

/// What one daemon is told.
#[derive(Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) index: usize,
    pub(super) dir: PathBuf,
    pub(super) config: PathBuf,
    pub(super) faults: Vec<Fault>,
    pub(super) record: Option<PathBuf>,
    pub(super) late: Option<u64>,
    pub(super) threads: usize,
    /// Whether it announces an address by which others can join it.
    pub(super) joinable: bool,
}
