//! Errors of a daemon that does not start, or ends without having left.

use crate::api::{ApiError, Trouble};
use crate::goal::Missed;
use crate::membership::MembershipError;
use crate::net::{GateError, NetError};
use crate::store::StoreError;
use murmurate_attach::AttachError;
use murmurate_protocol::wire::Reason;
use murmurate_protocol::{PeerId, PlanError};
use murmurate_strategies::grid::StrategyError;
use murmurate_tasks::TaskError;
use std::fmt;
use std::path::PathBuf;

/// A refusal between this peer and another one, in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedBy {
    /// The other peer.
    pub peer: PeerId,
    /// The reason of the refusal.
    pub reason: Reason,
    /// The keys of the configuration that differ, as far as the other peer has said it.
    pub keys: Vec<String>,
}

/// Keys that a refusal names.
const KEYS_NAMED_MAX: usize = 4;

impl RefusedBy {
    /// A refusal of which no more is known.
    pub const fn new(peer: PeerId, reason: Reason) -> Self {
        Self {
            peer,
            reason,
            keys: Vec::new(),
        }
    }

    /// True where the two have other settings.
    pub(super) const fn is_for_settings(&self) -> bool {
        matches!(self.reason, Reason::OtherModel | Reason::OtherPlan)
    }

    /// The reason in words, with the keys that differ.
    fn why(&self) -> String {
        let what = match self.reason {
            Reason::OtherModel => "it trains another model",
            Reason::OtherPlan => "it follows another plan",
            reason => return reason.to_string(),
        };
        let named: Vec<String> = self.keys.iter().map(|key| format!("`{key}`")).collect();
        let Some((last, others)) = named.split_last() else {
            return self.reason.to_string();
        };
        let keys = match (others.len(), named.len().checked_sub(KEYS_NAMED_MAX)) {
            (0, _) => format!("{last} is"),
            (_, Some(more @ 1..)) => {
                format!(
                    "{} and {more} more keys are",
                    named[..KEYS_NAMED_MAX].join(", ")
                )
            }
            _ => format!("{} and {last} are", others.join(", ")),
        };
        format!(
            "{what}, because {keys} not the same in both configurations: write the same values into both"
        )
    }
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "daemon {} does not fit this one: {}",
            self.peer,
            self.why()
        )
    }
}

/// Why a daemon does not start, or ends without having left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The budget of privacy allows no contribution.
    #[error(
        "{status} The next one would pass `strategy.aggregation.budget`: no contribution leaves this directory (a \
         higher budget in the configuration of all daemons is a weaker promise)"
    )]
    PrivacySpent {
        /// The account.
        status: String,
    },
    /// A promise about the data of one peer, where peers train the same data in turn.
    #[error(
        "`shards.kind` is \"dealt\", so that all daemons train the same data in turn, and the rule `private-mean` \
         protects the data of one daemon: set it to \"own\" where each has its own, or give `shards.index` and \
         `shards.of`"
    )]
    PrivacyDealt,
    /// The daemon cannot enter the run.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// Every peer to join has refused this daemon, or is of another run.
    #[error("{peer}, the daemon to join: {error}")]
    TurnedAway {
        /// The last of them.
        peer: PeerId,
        /// Why.
        error: GateError,
    },
    /// The daemon's directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The task cannot be built: model, data, shard or device.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Its trainer in another process.
    #[error(transparent)]
    Attach(AttachError),
    /// The strategy does not fit the model.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The plan exceeds a limit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The network cannot start.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The HTTP server cannot start.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The checkpoint's tensors do not fit the model.
    #[error("the checkpoint in {dir} does not fit: {source} (move it away to start afresh)")]
    Restore {
        /// The daemon's directory.
        dir: String,
        /// The mismatch.
        #[source]
        source: murmurate_strategies::state::StateError,
    },
    /// The peer's snapshot in the checkpoint cannot be read.
    #[error("the checkpoint in {0} has an unreadable snapshot (move it away to start afresh)")]
    Snapshot(String),
    /// The peer's inputs cannot be recorded.
    #[error("--record: {}: {reason}", path.display())]
    Record {
        /// The record's path.
        path: PathBuf,
        /// The problem and what to do.
        reason: String,
    },
    /// No peer of the run could be reached.
    #[error("no daemon of the run could be reached{}", unreachable(.0.as_deref()))]
    Unreachable(Option<String>),
    /// A peer to join does not fit, or does not accept this one.
    #[error("{0}")]
    Refused(RefusedBy),
    /// All rounds are done, and the run does not accept this daemon any more.
    #[error("all rounds are complete, but they are no part of the run: {} {}", .0.text, .0.action)]
    NoMember(Trouble),
    /// The daemon left without a checkpoint of its last rounds.
    #[error("{0}; the training since the last checkpoint is lost")]
    Unsaved(String),
    /// The trainer cannot go on, so the peer left.
    #[error("{0}")]
    Stopped(String),
    /// All rounds are done, and the goal is not reached.
    #[error(
        "{}: ended at {:.4} after {rounds} rounds, {}; give more --rounds or {}",
        missed.flag, missed.found, missed.words, missed.remedy
    )]
    Missed {
        /// The goal.
        missed: Missed,
        /// The rounds.
        rounds: u64,
    },
    /// Metrics cannot be written.
    #[error(
        "`daemon.metrics_dir`: cannot write in {}: {source}; give another directory", dir.display()
    )]
    Metrics {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// Traces and metrics cannot be exported.
    #[error("`daemon.otlp`: {0}")]
    Telemetry(String),
    /// Another daemon has this one's identity.
    #[error(
        "this identity runs elsewhere, so this daemon stops: another one has the same identity.key, as a copied \
         directory has; start only one of the two, or enter the run as a new member in a new directory \
         (`murmurate run --dir NEW --invite FILE`)"
    )]
    Elsewhere,
    /// The operator pressed Ctrl+C twice.
    #[error("interrupted before the checkpoint was written; the previous one is intact")]
    Interrupted,
    /// A lane's thread ended early.
    #[error("training stopped with a bug (its message is above); the last checkpoint is intact")]
    LaneEnded,
    /// The network's task ended early.
    #[error("the network stopped with a bug (its message is above)")]
    NetworkEnded,
    /// Threads or signals cannot be set up.
    #[error("the system refused a thread or a signal handler: {0}")]
    Runtime(#[source] std::io::Error),
}

/// Where other daemons were looked for, and what to do.
fn unreachable(bootstrap: Option<&str>) -> String {
    match bootstrap {
        Some(tried) => format!(
            " through {tried}; check the address, that the daemon runs, and that UDP or TCP to it is allowed"
        ),
        None => ": none was found on the local network, and no address of one is known here; give an invite \
                 with --invite FILE, or an address with --join"
            .to_owned(),
    }
}

impl DaemonError {
    /// True where the operator ended the daemon before its work was done.
    pub const fn was_interrupted(&self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::Attach(AttachError::Interrupted)
        )
    }
}

impl From<RefusedBy> for DaemonError {
    fn from(refused: RefusedBy) -> Self {
        Self::Refused(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_some_of_the_keys_that_differ() {
        let why = |keys: &[&str]| {
            let refused = RefusedBy {
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                ..RefusedBy::new(PeerId::from_bytes([1; 32]), Reason::OtherPlan)
            };
            refused.why()
        };
        assert!(why(&[]).contains("compare seed, rounds and strategy"));
        let one = "it follows another plan, because `run.seed` is not the same in both configurations: write the \
                   same values into both";
        assert_eq!(why(&["run.seed"]), one);
        assert!(why(&["a", "b"]).contains(", because `a` and `b` are not"));
        assert!(why(&["a", "b", "c", "d"]).contains("`a`, `b`, `c` and `d` are"));
        assert!(why(&["a", "b", "c", "d", "e", "f"]).contains("`c`, `d` and 2 more keys are"));
    }
}
