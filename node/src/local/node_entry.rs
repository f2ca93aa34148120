//! The report of a local swarm on one daemon.

use super::member::{Member, State};
use super::network::LinkEntry;
use crate::api::Traffic;
use crate::report::NodeReport;
use serde::Serialize;

/// The report on one daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeEntry {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// `finished`, `interrupted` (it left before the run was over), `killed`, `stopped`, `late` (never started), `gone` (a liar that was cut off) or
    /// `lost` (no report came).
    pub status: String,
    /// The lies that it was told to tell. The totals and the goal are about the other daemons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lies: Vec<String>,
    /// The daemon's own measurements.
    #[serde(flatten)]
    pub report: NodeReport,
    /// Distance of its parameters from the mean over all finished daemons (Euclidean norm).
    pub consensus_distance: Option<f64>,
    /// Seconds from the start of the first daemon to the end of this daemon's first round.
    pub first_round_s: Option<f64>,
    /// Inner steps per second, divided by those of the same daemon with preset `none`.
    pub utilization: Option<f64>,
    /// Its emulated link, if the run has emulated links.
    pub link: Option<LinkEntry>,
}

impl NodeEntry {
    /// Whether it is an honest daemon that finished.
    pub(super) fn counts(&self) -> bool {
        self.reported() && self.lies.is_empty()
    }

    /// Whether it left in order: its last report is here.
    pub(super) fn reported(&self) -> bool {
        matches!(self.status.as_str(), "finished" | "interrupted")
    }

    /// Builds the entry from the final state of a daemon.
    pub(super) fn of(member: &Member) -> Self {
        let status = match (member.state, &member.report) {
            (State::Interrupted, Some(_)) => "interrupted",
            (_, Some(_)) => "finished",
            (State::Killed | State::Away(_), _) => "killed",
            (State::Stopped, _) => "stopped",
            (State::Waiting, _) => "late",
            (State::Gone, _) => "gone",
            _ => "lost",
        };
        let seen = || NodeReport {
            test_accuracy: member.accuracy(),
            test_loss: member.loss(),
            ranks: u32::try_from(member.plan.ranks).unwrap_or(u32::MAX),
            rounds: member.progress.round,
            inner_steps: member.progress.inner_steps,
            wall_s: member.progress.wall_s,
            bytes_sent: Traffic::on_the_wire(member.progress.bytes_sent),
            bytes_received: Traffic::on_the_wire(member.progress.bytes_received),
            ..NodeReport::default()
        };
        Self {
            node: member.plan.index,
            status: status.to_owned(),
            lies: member.plan.lies.iter().map(ToString::to_string).collect(),
            // A daemon without a report is described by its last progress.
            report: member.report.clone().unwrap_or_else(seen),
            consensus_distance: None,
            first_round_s: None,
            utilization: None,
            link: None,
        }
    }
}
