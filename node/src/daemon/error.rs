//! Why a daemon does not start, or ends other than by leaving.

use crate::api::ApiError;
use crate::net::NetError;
use crate::store::StoreError;
use murmurate_attach::AttachError;
use murmurate_protocol::wire::Reason;
use murmurate_protocol::{PeerId, PlanError};
use murmurate_strategies::grid::StrategyError;
use murmurate_tasks::TaskError;
use std::fmt;
use std::path::PathBuf;

/// A peer that will not have this one, or the reverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedBy {
    /// The other peer.
    pub peer: PeerId,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "peer {} and this one do not fit: {}",
            self.peer, self.reason
        )
    }
}

/// Why a daemon does not start, or ends other than by leaving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Its directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its task: model, data, shard, device.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Its trainer in another process.
    #[error(transparent)]
    Attach(AttachError),
    /// Its strategy does not go with the model.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// Its plan is against a limit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Its network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Its HTTP interface.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The checkpoint's tensors do not fit.
    #[error(
        "the checkpoint in {dir} cannot be taken over: {source} (move it away to start afresh)"
    )]
    Restore {
        /// The daemon's directory.
        dir: String,
        /// What does not fit.
        #[source]
        source: murmurate_strategies::state::StateError,
    },
    /// The peer's own part of the checkpoint cannot be read.
    #[error("the checkpoint in {dir} has an unreadable snapshot (move it away to start afresh)")]
    Snapshot {
        /// The daemon's directory.
        dir: String,
    },
    /// What goes into its peer cannot be recorded.
    #[error("--record: {}: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// There is no peer to join.
    #[error(
        "no peer of the run could be reached{}; check the address, that the peer runs, and that \
         UDP or TCP to it is allowed",
        .bootstrap.as_ref().map(|b| format!(" through {b}")).unwrap_or_default()
    )]
    Unreachable {
        /// The last address tried, with the reason.
        bootstrap: Option<String>,
    },
    /// Somebody to join who does not fit.
    #[error("{0}")]
    Refused(RefusedBy),
    /// It left without a checkpoint of its last rounds.
    #[error("{reason}; what was trained since the last checkpoint is lost, that one is intact")]
    Unsaved {
        /// What the disk said.
        reason: String,
    },
    /// A second Ctrl+C.
    #[error("interrupted before the checkpoint was written; the previous one is intact")]
    Interrupted,
    /// A lane's thread ended.
    #[error("training stopped with a bug (its message is above); the last checkpoint is intact")]
    LaneEnded,
    /// The network's task ended.
    #[error("the network stopped with a bug (its message is above)")]
    NetworkEnded,
    /// Threads, signals.
    #[error("the system refused a thread or a signal handler: {0}")]
    Runtime(#[source] std::io::Error),
}

impl From<RefusedBy> for DaemonError {
    fn from(refused: RefusedBy) -> Self {
        Self::Refused(refused)
    }
}
