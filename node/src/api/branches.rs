//! What the status says of the branches of a swarm that was split.

use super::observer::Observer;
use super::status::{BranchStatus, MergedStatus};
use murmurate_protocol::{Branch, Round};

impl Observer {
    /// Stores the branch that the daemon is in, and how many peers are missing from it.
    pub fn set_branch(&mut self, branch: Option<(Branch, usize)>) {
        self.status.branch = branch.map(|(branch, missing)| BranchStatus {
            since_round: branch.began().0,
            weight: branch.weight,
            missing: missing as u64,
        });
    }

    /// Branches were merged.
    pub(super) fn merged(&mut self, round: Round, sides: &[(u16, f64)]) {
        self.status.merged = Some(MergedStatus {
            round: round.0,
            sides: sides.to_vec(),
        });
    }
}
