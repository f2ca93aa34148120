//! Configuration and arguments of one daemon of a local swarm.

use crate::faults::Fault;
use std::path::PathBuf;

/// Configuration and arguments of one daemon.
#[derive(Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) index: usize,
    pub(super) dir: PathBuf,
    pub(super) config: PathBuf,
    pub(super) faults: Vec<Fault>,
    pub(super) record: Option<PathBuf>,
    pub(super) late: Option<u64>,
    pub(super) threads: usize,
    /// Whether it announces an address at which others can join.
    pub(super) joinable: bool,
}
