//! What the status says of the branches of a swarm that was split, and of the owner's directives.

use super::ControlStatus;
use super::observer::Observer;
use super::rounds::RoundWindow;
use super::status::{BranchStatus, MergedStatus};
use crate::directive::CONFIGURED;
use murmurate_protocol::{Branch, PeerId, Round, Time};

impl Observer {
    /// Stores the branch that the daemon is in, and how many peers are missing from it.
    pub fn set_branch(&mut self, branch: Option<(Branch, usize)>) {
        self.status.branch = branch.map(|(branch, missing)| BranchStatus {
            since_round: branch.began().0,
            weight: branch.weight,
            missing: missing as u64,
        });
    }

    /// Stores what the owner has directed, and the number of rounds that follows from it.
    pub fn set_control(&mut self, control: ControlStatus, rounds: u64) {
        let rate = self.about.rate.as_ref();
        let mut control = ControlStatus {
            rate_ends: rate.and_then(|rate| rate.factor.ends()),
            codecs: self.about.codecs.clone(),
            ..control
        };
        let known = |codec: &String| control.codecs.contains(codec) || codec == CONFIGURED;
        for directive in &mut control.directives {
            if directive.codec.as_ref().is_some_and(|codec| !known(codec)) {
                directive.state = "refused".to_owned();
            }
        }
        if !control.codecs.contains(&control.codec) {
            let chosen = control.agreed_codec.as_ref();
            let chosen = chosen.and_then(|words| words.split(' ').next());
            control.codec = chosen.unwrap_or(&self.about.codec).to_owned();
        }
        self.status.control = control;
        self.status.rounds = rounds;
    }

    /// A peer's configuration differs from this daemon's in these keys.
    pub fn differs(&mut self, peer: &PeerId, keys: &[String]) {
        self.insight.differs(peer, keys);
    }

    /// Training begins, at the start or after a pause: rates and costs are measured from here.
    pub(super) fn begin_windows(&mut self, now: Time) {
        self.started.get_or_insert(now);
        if self.window.is_empty() {
            self.mark(now);
            self.window.push_back((now, self.status.inner_steps));
        }
    }

    /// The run pauses: the time of the pause is no part of a round.
    pub(super) fn end_windows(&mut self) {
        self.window.clear();
        self.rounds = RoundWindow::default();
        self.status.inner_steps_per_s = 0.0;
    }

    /// Branches were merged.
    pub(super) fn merged(&mut self, round: Round, sides: &[(u16, f64)]) {
        self.status.merged = Some(MergedStatus {
            round: round.0,
            sides: sides.to_vec(),
        });
    }
}
