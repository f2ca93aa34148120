//! Totals of a local swarm over all its honest daemons.

use super::node_entry::NodeEntry;
use crate::api::Traffic;
use serde::Serialize;

/// Totals over all honest daemons.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Total {
    /// Mean accuracy over the daemons that finished.
    pub test_accuracy: Option<f64>,
    /// Lowest accuracy of the daemons that finished.
    pub test_accuracy_min: Option<f64>,
    /// Mean loss over the daemons that finished.
    pub test_loss: Option<f64>,
    /// Mean distance from the mean parameters, over the daemons that finished.
    pub consensus_distance: Option<f64>,
    /// Seconds from the start of the first daemon until every daemon has ended its first round.
    /// Daemons that were late or ended no round do not count.
    pub first_round_s: Option<f64>,
    /// Most rounds of a daemon.
    pub rounds: u64,
    /// Inner steps of all daemons.
    pub inner_steps: u64,
    /// Samples of all daemons.
    pub samples: u64,
    /// Longest wall time of a daemon, seconds.
    pub wall_s: f64,
    /// Seconds in inner steps of all daemons.
    pub train_s: f64,
    /// Inner steps per second of all finished daemons, divided by those with preset `none`.
    pub utilization: Option<f64>,
    /// Bytes sent by all daemons.
    pub bytes_sent: Traffic,
    /// Bytes received by all daemons.
    pub bytes_received: Traffic,
    /// Longest wait of any daemon, seconds.
    pub longest_wait_s: f64,
    /// The deadline of that wait, seconds.
    pub deadline_s: Option<f64>,
    /// Peak resident bytes, summed over the daemons.
    pub peak_rss_bytes: Option<u64>,
    /// The digest of all finished daemons, if it is the same for all.
    pub digest: Option<String>,
}

impl Total {
    /// Computes the totals.
    pub(super) fn of(nodes: &[NodeEntry]) -> Self {
        let done: Vec<&NodeEntry> = nodes.iter().filter(|n| n.counts()).collect();
        let mean = |value: fn(&NodeEntry) -> Option<f64>| {
            let all: Vec<f64> = done.iter().filter_map(|n| value(n)).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        let honest = || nodes.iter().filter(|n| n.lies.is_empty());
        let reports = || honest().map(|n| &n.report);
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
