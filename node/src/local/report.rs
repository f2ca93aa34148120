//! The report of a local swarm: one entry for each daemon, and totals.

use super::consensus::distances;
use super::demo::Told;
use super::fault_entry::FaultEntry;
use super::member::Member;
use super::merge_entry::MergeEntry;
use super::network::{LeakEntry, LocalNetwork};
use super::node_entry::NodeEntry;
use super::options::LocalOptions;
use super::plan::LocalPlan;
use super::stranger::StrangerEntry;
use super::swarm::{End, Swarm};
use super::total::Total;
use crate::goal::Target;
use serde::Serialize;

/// The object that `--json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LocalReport {
    /// Version of the program.
    pub version: String,
    /// The command line.
    pub args: Vec<String>,
    /// The preset.
    pub preset: String,
    /// The seed.
    pub seed: u64,
    /// The accuracy that every daemon had to reach, if any.
    pub until_accuracy: Option<f64>,
    /// The loss that every daemon had to reach, if any.
    pub until_loss: Option<f64>,
    /// Whether all of them reached it.
    pub reached: Option<bool>,
    /// Whether Ctrl+C ended it.
    pub interrupted: bool,
    /// One entry for each daemon, by index.
    pub nodes: Vec<NodeEntry>,
    /// All together.
    pub total: Total,
    /// The faults that occurred.
    pub faults: Vec<FaultEntry>,
    /// Merges of the sides of a split.
    pub merges: Vec<MergeEntry>,
    /// Traffic that bypassed the emulated links, if the run has emulated links.
    pub leaks: Option<LeakEntry>,
    /// What a stranger tried, if there was one.
    pub stranger: Option<StrangerEntry>,
    /// What happened, in sentences, of `--demo`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub story: Vec<Told>,
}

impl LocalReport {
    pub(super) fn new(plan: &LocalPlan, options: &LocalOptions, swarm: &Swarm, end: End) -> Self {
        let mut nodes: Vec<NodeEntry> = swarm.members.iter().map(NodeEntry::of).collect();
        for (node, member) in nodes.iter_mut().zip(&swarm.members) {
            let first = member.progress.first_round_unix_s;
            node.first_round_s = first.map(|at| (at - swarm.started_unix_s).max(0.0));
        }
        let finished = |m: &&Member| m.report.is_some() && !m.lies();
        let dirs: Vec<_> = swarm
            .members
            .iter()
            .filter(finished)
            .map(|m| m.plan.dir.as_path())
            .collect();
        let mut found = distances(&dirs).into_iter();
        for node in nodes.iter_mut().filter(|n| n.counts()) {
            node.consensus_distance = found.next().flatten();
        }
        if plan.preset == "none" {
            nodes.iter_mut().filter(|n| n.reported()).for_each(|n| {
                n.utilization = Some(1.0);
            });
        }
        let target = plan.target;
        let kills = swarm.killer.iter().flat_map(|killer| killer.kills.clone());
        let mut report = Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            args: options.args.clone(),
            preset: plan.preset.clone(),
            seed: plan.seed,
            until_accuracy: target.accuracy,
            until_loss: target.loss,
            reached: target.is_set().then(|| end == End::Reached),
            interrupted: end == End::Interrupted,
            total: Total::of(&nodes),
            nodes,
            faults: swarm
                .members
                .iter()
                .flat_map(Member::faults)
                .chain(kills)
                .collect(),
            merges: swarm.split.merges.clone(),
            leaks: None,
            stranger: None,
            story: Vec::new(),
        };
        let in_time = swarm.members.iter().zip(&report.nodes);
        report.total.first_round_s = in_time
            .filter(|(member, _)| member.plan.late.is_none())
            .filter_map(|(_, node)| node.first_round_s)
            .max_by(f64::total_cmp);
        if plan.preset == "none" {
            report.total.utilization = Some(1.0);
        }
        report
    }

    /// Indices of the daemons with a report.
    pub(super) fn finished_nodes(&self) -> Vec<usize> {
        self.nodes
            .iter()
            .filter(|n| n.reported())
            .map(|n| n.node)
            .collect()
    }

    /// Adds the traffic of the emulated links.
    pub(super) fn account(&mut self, network: &LocalNetwork) {
        for node in &mut self.nodes {
            node.link = network.link_of(node.node);
        }
        self.leaks = Some(network.leaks());
    }

    /// Adds the comparison with the same daemons under preset `none`.
    pub(super) fn compare(&mut self, baseline: &Swarm) {
        let rates: Vec<(usize, f64)> = baseline
            .members
            .iter()
            .filter_map(|m| Some((m.plan.index, m.report.as_ref()?.inner_steps_per_s())))
            .collect();
        self.utilize(&rates);
    }

    /// utilization = inner steps per second / those with preset `none`, for each daemon, and as a
    /// ratio of sums for the total.
    fn utilize(&mut self, rates: &[(usize, f64)]) {
        let (mut ours, mut alone) = (0.0, 0.0);
        for node in &mut self.nodes {
            let rate = rates
                .iter()
                .find(|(index, _)| *index == node.node)
                .map(|(_, rate)| *rate);
            let Some(rate) = rate.filter(|rate| *rate > 0.0) else {
                continue;
            };
            let own = node.report.inner_steps_per_s();
            node.utilization = Some(own / rate);
            ours += own;
            alone += rate;
        }
        self.total.utilization = (alone > 0.0).then(|| ours / alone);
    }

    /// A line that reports a missed target; `None` if there was no target or it was reached.
    pub fn missed(&self) -> Option<String> {
        if self.reached != Some(false) || self.interrupted {
            return None;
        }
        let target = Target {
            accuracy: self.until_accuracy,
            loss: self.until_loss,
        };
        let finished = self.nodes.iter().filter(|n| n.counts());
        let missed = finished.filter_map(|n| {
            let missed = target.missed(n.report.test_accuracy, n.report.test_loss)?;
            Some((n, missed))
        });
        let (worst, missed) = missed.min_by(|(_, a), (_, b)| b.by.total_cmp(&a.by))?;
        Some(format!(
            "{}: daemon {} ended at {:.4} after {} rounds, {}; give more --rounds or {}",
            missed.flag, worst.node, missed.found, worst.report.rounds, missed.words, missed.remedy,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Traffic;
    use crate::local::table;
    use crate::report::NodeReport;

    fn node(node: usize, status: &str, accuracy: f64, digest: &str) -> NodeEntry {
        let report = NodeReport {
            test_accuracy: Some(accuracy),
            inner_steps: 100,
            wall_s: 10.0,
            longest_wait_s: node as f64,
            deadline_s: Some(5.0 + node as f64),
            digest: Some(digest.to_owned()),
            bytes_sent: Traffic {
                payload: 3,
                encoded: 2,
                wire: 1,
            },
            ..NodeReport::default()
        };
        let consensus_distance = Some(node as f64);
        NodeEntry {
            node,
            status: status.to_owned(),
            lies: Vec::new(),
            report,
            consensus_distance,
            first_round_s: None,
            utilization: None,
            link: None,
        }
    }

    fn report() -> LocalReport {
        let nodes = vec![
            node(0, "finished", 0.9, "a"),
            node(1, "finished", 0.8, "a"),
            node(2, "killed", 0.1, "b"),
        ];
        let total = Total::of(&nodes);
        let (until_accuracy, reached) = (Some(0.95), Some(false));
        LocalReport {
            nodes,
            total,
            until_accuracy,
            reached,
            ..LocalReport::default()
        }
    }

    #[test]
    fn the_total_is_of_those_that_finished_and_the_sums_of_all() {
        let total = report().total;
        assert!((total.test_accuracy.unwrap() - 0.85).abs() < 1e-12);
        assert_eq!(total.test_accuracy_min, Some(0.8));
        assert_eq!(total.consensus_distance, Some(0.5));
        assert_eq!((total.inner_steps, total.bytes_sent.payload), (300, 9));
        assert_eq!((total.longest_wait_s, total.deadline_s), (2.0, Some(7.0)));
        assert_eq!(total.digest.as_deref(), Some("a"));
    }

    #[test]
    fn a_liar_is_named_and_counts_for_nothing() {
        let mut liar = node(2, "finished", 0.1, "c");
        liar.lies = vec!["weight".to_owned()];
        let nodes = vec![
            node(0, "finished", 0.9, "a"),
            node(1, "finished", 0.97, "a"),
            liar,
        ];
        let report = LocalReport {
            total: Total::of(&nodes),
            nodes,
            until_accuracy: Some(0.95),
            reached: Some(false),
            ..LocalReport::default()
        };
        assert_eq!(report.total.digest.as_deref(), Some("a"));
        assert_eq!(report.total.test_accuracy_min, Some(0.9));
        assert_eq!(
            (report.total.inner_steps, report.total.bytes_sent.payload),
            (200, 6)
        );
        assert!(report.missed().unwrap().contains("daemon 0 ended"));
        assert!(
            table(&report)
                .to_string()
                .contains("finished (lies: weight)")
        );
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["nodes"][2]["lies"][0], "weight");
        assert!(value["nodes"][0].get("lies").is_none());
    }

    #[test]
    fn utilization_is_a_ratio_of_rates() {
        let mut report = report();
        report.utilize(&[(0, 20.0), (1, 12.5)]);
        assert_eq!(report.nodes[0].utilization, Some(0.5));
        assert_eq!(report.nodes[1].utilization, Some(0.8));
        assert_eq!(report.nodes[2].utilization, None);
        assert_eq!(report.total.utilization, Some(20.0 / 32.5));
    }

    #[test]
    fn a_missed_target_names_the_worst_daemon() {
        let line = report().missed().unwrap();
        assert!(line.starts_with("--until-accuracy: daemon 1 ended at 0.8000 after 0 rounds"));
        let reached = LocalReport {
            reached: Some(true),
            ..report()
        };
        assert_eq!(reached.missed(), None);
    }

    #[test]
    fn the_json_has_the_promised_fields() {
        let value = serde_json::to_value(report()).unwrap();
        for of in [&value["nodes"][0], &value["total"]] {
            for field in [
                "test_accuracy",
                "test_loss",
                "consensus_distance",
                "rounds",
                "inner_steps",
                "samples",
                "wall_s",
                "train_s",
                "utilization",
                "bytes_sent",
                "bytes_received",
                "longest_wait_s",
                "deadline_s",
                "peak_rss_bytes",
                "digest",
            ] {
                assert!(of.get(field).is_some(), "{field}");
            }
        }
        assert_eq!(value["total"]["bytes_sent"]["encoded"], 6);
        assert!(table(&report()).to_string().contains("killed"));
    }
}
