//! What is known of the daemon's end: whether it is over, why, and what must be said then.

use crate::daemon::{DaemonError, RefusedBy};

/// Refusals by other peers that are kept for the last words.
const REFUSALS_MAX: usize = 16;

/// What the daemon ends with.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Whether the daemon was told which peers to join.
    pub(super) joining: bool,
    /// Whether the peer has left, so that the driver's loop ends.
    pub(super) left: bool,
    /// What went wrong, if anything did.
    pub(super) error: Option<DaemonError>,
    /// Peers that refused this one, or that this one refused.
    pub(super) refused: Vec<RefusedBy>,
    /// Whether any peer of the run was ever linked.
    pub(super) met_anyone: bool,
    /// The addresses to join that did not answer.
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

    /// No peer with a state answered in time.
    pub(super) fn join_failed(&mut self) {
        self.error = Some(match self.refused.first() {
            Some(refused) => refused.clone().into(),
            None => DaemonError::Unreachable {
                bootstrap: self.bootstrap.clone(),
            },
        });
    }

    /// Keeps a refusal. `still_joins`: whether this peer has not taken part in a round yet.
    pub(super) fn refused(&mut self, refused: RefusedBy, still_joins: bool) {
        // A peer that can reach only those that refuse it gains nothing by waiting longer.
        if self.joining && !self.met_anyone && still_joins {
            self.fail(refused.clone().into());
        }
        if self.refused.len() < REFUSALS_MAX {
            self.refused.push(refused);
        }
    }
}
