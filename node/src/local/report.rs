//! What a local swarm reports: one entry per daemon, and the total.

use super::consensus::distances;
use super::fault_entry::{FaultEntry, faults};
use super::member::Member;
use super::network::{LeakEntry, LinkEntry, LocalNetwork};
use super::plan::{LocalOptions, LocalPlan};
use super::swarm::{End, State, Swarm};
use crate::api::Traffic;
use crate::progress::{bytes, duration};
use crate::report::NodeReport;
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
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
    /// Whether they did.
    pub reached: Option<bool>,
    /// Whether Ctrl+C ended it.
    pub interrupted: bool,
    /// Daemon by daemon.
    pub nodes: Vec<NodeEntry>,
    /// All together.
    pub total: Total,
    /// The faults that were triggered, with the place where they hit.
    pub faults: Vec<FaultEntry>,
    /// What went past the emulated links, if there are any.
    pub leaks: Option<LeakEntry>,
}

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

impl LocalReport {
    pub(super) fn new(plan: &LocalPlan, options: &LocalOptions, swarm: &Swarm, end: End) -> Self {
        let mut nodes: Vec<NodeEntry> = swarm.members.iter().map(entry).collect();
        for (node, member) in nodes.iter_mut().zip(&swarm.members) {
            let first = member.progress.first_round_unix_s;
            node.first_round_s = first.map(|at| (at - swarm.started_unix_s).max(0.0));
        }
        let finished = |m: &&Member| m.report.is_some();
        let dirs: Vec<_> = swarm
            .members
            .iter()
            .filter(finished)
            .map(|m| m.plan.dir.as_path())
            .collect();
        let mut found = distances(&dirs).into_iter();
        for node in nodes.iter_mut().filter(|n| n.status == "finished") {
            node.consensus_distance = found.next().flatten();
        }
        if plan.preset == "none" {
            nodes
                .iter_mut()
                .filter(|n| n.status == "finished")
                .for_each(|n| {
                    n.utilization = Some(1.0);
                });
        }
        let target = options.until_accuracy(&plan.preset);
        let kills = swarm.killer.iter().flat_map(|killer| killer.kills.clone());
        let mut report = Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            args: options.args.clone(),
            preset: plan.preset.clone(),
            seed: plan.seed,
            until_accuracy: target,
            reached: target.map(|_| end == End::Reached),
            interrupted: end == End::Interrupted,
            total: Total::of(&nodes),
            nodes,
            faults: swarm.members.iter().flat_map(faults).chain(kills).collect(),
            leaks: None,
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

    /// The daemons whose reports are there.
    pub(super) fn finished_nodes(&self) -> Vec<usize> {
        self.nodes
            .iter()
            .filter(|n| n.status == "finished")
            .map(|n| n.node)
            .collect()
    }

    /// Takes in what passed over the emulated links.
    pub(super) fn account(&mut self, network: &LocalNetwork) {
        for node in &mut self.nodes {
            node.link = network.link_of(node.node);
        }
        self.leaks = Some(network.leaks());
    }

    /// Takes in what the same daemons did with preset `none`.
    pub(super) fn compare(&mut self, baseline: &Swarm) {
        let rates: Vec<(usize, f64)> = baseline
            .members
            .iter()
            .filter_map(|m| Some((m.plan.index, m.report.as_ref()?.inner_steps_per_s())))
            .collect();
        self.utilize(&rates);
    }

    /// utilization = inner steps per second / those with preset `none`, daemon by daemon and as a
    /// ratio of sums.
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

    /// The line for a target that was missed.
    pub fn missed(&self) -> Option<String> {
        if self.reached != Some(false) || self.interrupted {
            return None;
        }
        let target = self.until_accuracy?;
        let accuracy = |n: &NodeEntry| n.report.test_accuracy.unwrap_or(0.0);
        let worst = self
            .nodes
            .iter()
            .filter(|n| n.status == "finished")
            .min_by(|a, b| accuracy(a).total_cmp(&accuracy(b)))?;
        Some(format!(
            "--until-accuracy: daemon {} ended at {:.4} after {} rounds, below {target}; \
             give more --rounds or a lower target",
            worst.node,
            accuracy(worst),
            worst.report.rounds,
        ))
    }
}

fn entry(member: &Member) -> NodeEntry {
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
    NodeEntry {
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

impl Total {
    fn of(nodes: &[NodeEntry]) -> Self {
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

/// The report as a table.
pub fn table(report: &LocalReport) -> String {
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"));
    let seconds = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{v:.1} s"));
    let share =
        |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{:.0} %", 100.0 * v));
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header([
        "daemon",
        "status",
        "accuracy",
        "loss",
        "distance",
        "first round",
        "rounds",
        "inner steps",
        "time",
        "utilization",
        "sent",
        "received",
        "longest wait",
        "peak memory",
    ]);
    for node in &report.nodes {
        let r = &node.report;
        table.add_row([
            node.node.to_string(),
            node.status.clone(),
            number(r.test_accuracy),
            number(r.test_loss),
            number(node.consensus_distance),
            seconds(node.first_round_s),
            r.rounds.to_string(),
            r.inner_steps.to_string(),
            duration(r.wall_s),
            share(node.utilization),
            bytes(r.bytes_sent.wire),
            bytes(r.bytes_received.wire),
            duration(r.longest_wait_s),
            r.peak_rss_bytes.map_or_else(|| "-".to_owned(), bytes),
        ]);
    }
    let t = &report.total;
    table.add_row([
        "all".to_owned(),
        report.preset.clone(),
        number(t.test_accuracy),
        number(t.test_loss),
        number(t.consensus_distance),
        seconds(t.first_round_s),
        t.rounds.to_string(),
        t.inner_steps.to_string(),
        duration(t.wall_s),
        share(t.utilization),
        bytes(t.bytes_sent.wire),
        bytes(t.bytes_received.wire),
        duration(t.longest_wait_s),
        t.peak_rss_bytes.map_or_else(|| "-".to_owned(), bytes),
    ]);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(table(&report()).contains("killed"));
    }
}
