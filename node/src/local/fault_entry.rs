//! A fault that was triggered, as the report tells it.

use super::member::Member;
use super::swarm::State;
use serde::Serialize;

/// A fault that was triggered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultEntry {
    /// Which daemon.
    pub node: usize,
    /// `kill`, `stop` or `late`.
    pub kind: String,
    /// In which round.
    pub round: u64,
    /// In which phase.
    pub phase: Option<String>,
    /// Seconds from the start of the first daemon; of `--kill-every` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// The most resident bytes of the process that was killed; of `--kill-every` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
}

/// The faults that one daemon was told to do itself.
pub(super) fn faults(member: &Member) -> Vec<FaultEntry> {
    let node = member.plan.index;
    let late = member
        .plan
        .late
        .filter(|_| member.state != State::Waiting)
        .map(|round| FaultEntry {
            node,
            kind: "late".to_owned(),
            round,
            phase: None,
            at_s: None,
            peak_rss_bytes: None,
        });
    let hit = member.fault.map(|(fault, round)| FaultEntry {
        node,
        kind: if member.state == State::Stopped {
            "stop"
        } else {
            "kill"
        }
        .to_owned(),
        round,
        phase: Some(fault.phase.to_string()),
        at_s: None,
        peak_rss_bytes: None,
    });
    late.into_iter().chain(hit).collect()
}
