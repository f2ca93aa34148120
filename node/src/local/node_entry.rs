//! What a local swarm reports of one daemon.

use super::member::{Member, State};
use super::network::LinkEntry;
use crate::report::NodeReport;
use serde::Serialize;

/// One daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeEntry {
    /// Which, from zero.
    pub node: usize,
    /// `finished`, `killed`, `stopped`, `late` (never started) or `lost` (no report came).
    pub status: String,
    /// What it measured itself.
    #[serde(flatten)]
    pub report: NodeReport,
    /// Distance of its parameters from the mean of all that finished.
    pub consensus_distance: Option<f64>,
    /// Seconds from the start of the first daemon until its own first round was in force.
    pub first_round_s: Option<f64>,
    /// Its inner steps per second over those of the same daemon with preset `none`.
    pub utilization: Option<f64>,
    /// Its emulated link, if there is one.
    pub link: Option<LinkEntry>,
}

impl NodeEntry {
    /// The daemon as it ended.
    pub(super) fn of(member: &Member) -> Self {
        let status = match (member.state, &member.report) {
            (_, Some(_)) => "finished",
            (State::Killed | State::Away(_), _) => "killed",
            (State::Stopped, _) => "stopped",
            (State::Waiting, _) => "late",
            _ => "lost",
        };
        let seen = || NodeReport {
            test_accuracy: member.accuracy(),
            test_loss: member.loss(),
            rounds: member.progress.round,
            inner_steps: member.progress.inner_steps,
            wall_s: member.progress.wall_s,
            ..NodeReport::default()
        };
        Self {
            node: member.plan.index,
            status: status.to_owned(),
            // Of a daemon without a report we have what it said last.
            report: member.report.clone().unwrap_or_else(seen),
            consensus_distance: None,
            first_round_s: None,
            utilization: None,
            link: None,
        }
    }
}
