//! Configuration and arguments of one daemon of a local swarm.

use crate::faults::Fault;
use crate::lies::Lie;
use crate::splits::Split;
use std::ffi::OsString;
use std::path::PathBuf;

/// Configuration and arguments of one daemon.
#[derive(Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) index: usize,
    pub(super) dir: PathBuf,
    pub(super) config: PathBuf,
    pub(super) faults: Vec<Fault>,
    pub(super) lies: Vec<Lie>,
    /// Its split from others.
    pub(super) split: Option<Split>,
    pub(super) record: Option<PathBuf>,
    pub(super) late: Option<u64>,
    pub(super) threads: usize,
    /// Number of its trainers.
    pub(super) ranks: usize,
    /// Its training loop, if that is a process of its own.
    pub(super) command: Vec<OsString>,
    /// Whether it announces an address at which others can join.
    pub(super) joinable: bool,
}
