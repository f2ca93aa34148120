//! The daemon's end: whether it has come, the reason, and what to tell the operator.

use crate::daemon::{DaemonError, RefusedBy};

/// Refusals by other peers that are kept for the final error.
const REFUSALS_MAX: usize = 16;

/// What is known about the daemon's end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Whether the configuration names peers to join.
    pub(super) joining: bool,
    /// Whether the peer has left. Then the driver's loop ends.
    pub(super) left: bool,
    /// The error that ended the daemon, if any.
    pub(super) error: Option<DaemonError>,
    /// Peers that refused this one, or that this one refused.
    pub(super) refused: Vec<RefusedBy>,
    /// Whether any peer of the run was ever linked.
    pub(super) met_anyone: bool,
    /// The addresses to join that did not answer, with the reasons.
    pub(super) bootstrap: Option<String>,
    /// Why the last checkpoint was not written.
    pub(super) unsaved: Option<String>,
    /// How often the operator asked the daemon to leave.
    pub(super) interrupts: u32,
}

impl Ending {
    /// Ends the daemon with an error.
    pub(super) fn fail(&mut self, error: DaemonError) {
        self.error = Some(error);
        self.left = true;
    }

    /// Sets the error for a join that timed out: no peer with a state answered.
    pub(super) fn join_failed(&mut self) {
        self.error = Some(match self.refused.first() {
            Some(refused) => refused.clone().into(),
            None => DaemonError::Unreachable {
                bootstrap: self.bootstrap.clone(),
            },
        });
    }

    /// Stores a refusal. `still_joins` tells that this peer has not taken part in a round yet.
    pub(super) fn refused(&mut self, refused: RefusedBy, still_joins: bool) {
        // If all reachable peers refuse this one, waiting longer does not help.
        if self.joining && !self.met_anyone && still_joins {
            self.fail(refused.clone().into());
        }
        if self.refused.len() < REFUSALS_MAX {
            self.refused.push(refused);
        }
    }
}
