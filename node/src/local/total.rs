//! What a local swarm reports of all its daemons together.

use super::node_entry::NodeEntry;
use crate::api::Traffic;
use serde::Serialize;

/// All daemons together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Total {
    /// Mean over the daemons that finished.
    pub test_accuracy: Option<f64>,
    /// The lowest of them.
    pub test_accuracy_min: Option<f64>,
    /// Mean over the daemons that finished.
    pub test_loss: Option<f64>,
    /// Mean over the daemons that finished.
    pub consensus_distance: Option<f64>,
    /// Seconds from the start of the first daemon until the first round of the last one was in
    /// force; daemons that were late or never got there do not count.
    pub first_round_s: Option<f64>,
    /// The most.
    pub rounds: u64,
    /// Sum.
    pub inner_steps: u64,
    /// Sum.
    pub samples: u64,
    /// The longest.
    pub wall_s: f64,
    /// Sum.
    pub train_s: f64,
    /// Inner steps per second of all that finished over those of the same with preset `none`.
    pub utilization: Option<f64>,
    /// Sum.
    pub bytes_sent: Traffic,
    /// Sum.
    pub bytes_received: Traffic,
    /// The longest wait of all.
    pub longest_wait_s: f64,
    /// The deadline which that wait had.
    pub deadline_s: Option<f64>,
    /// Sum.
    pub peak_rss_bytes: Option<u64>,
    /// The digest that all daemons which finished share, if they do.
    pub digest: Option<String>,
}

impl Total {
    /// Sums and means of the daemons.
    pub(super) fn of(nodes: &[NodeEntry]) -> Self {
        let done: Vec<&NodeEntry> = nodes.iter().filter(|n| n.status == "finished").collect();
        let mean = |value: fn(&NodeEntry) -> Option<f64>| {
            let all: Vec<f64> = done.iter().filter_map(|n| value(n)).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        let reports = || nodes.iter().map(|n| &n.report);
        let longest = reports().max_by(|a, b| a.longest_wait_s.total_cmp(&b.longest_wait_s));
        let first = done.first().and_then(|n| n.report.digest.clone());
        let shared = done.iter().all(|n| n.report.digest == first);
        let peaks: Vec<u64> = reports().filter_map(|r| r.peak_rss_bytes).collect();
        Self {
            test_accuracy: mean(|n| n.report.test_accuracy),
            test_accuracy_min: done
                .iter()
                .filter_map(|n| n.report.test_accuracy)
                .min_by(f64::total_cmp),
            test_loss: mean(|n| n.report.test_loss),
            consensus_distance: mean(|n| n.consensus_distance),
            first_round_s: None,
            rounds: reports().map(|r| r.rounds).max().unwrap_or(0),
            inner_steps: reports().map(|r| r.inner_steps).sum(),
            samples: reports().map(|r| r.samples).sum(),
            wall_s: reports().map(|r| r.wall_s).fold(0.0, f64::max),
            train_s: reports().map(|r| r.train_s).sum(),
            utilization: None,
            bytes_sent: reports()
                .map(|r| r.bytes_sent)
                .fold(Traffic::default(), |a, b| a + b),
            bytes_received: reports()
                .map(|r| r.bytes_received)
                .fold(Traffic::default(), |a, b| a + b),
            longest_wait_s: longest.map_or(0.0, |r| r.longest_wait_s),
            deadline_s: longest.and_then(|r| r.deadline_s),
            peak_rss_bytes: (!peaks.is_empty()).then(|| peaks.iter().sum()),
            digest: first.filter(|_| shared),
        }
    }
}
