//! The report of a local swarm: one entry for each daemon, and totals.

use super::args::FaultEntry;
use super::demo::Told;
use super::member::{Member, State};
use super::network::{LeakEntry, LinkEntry, LocalNetwork};
use super::options::LocalOptions;
use super::plan::LocalPlan;
use super::split_story::MergeEntry;
use super::stranger::StrangerEntry;
use super::swarm::{End, Swarm};
use crate::api::Traffic;
use crate::goal::Target;
use crate::progress::{bytes, duration};
use crate::report::NodeReport;
use crate::store::Checkpoint;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde::Serialize;
use std::path::Path;

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
    /// `true` if every daemon reached the goal; `None` without a goal.
    pub reached: Option<bool>,
    /// Set if Ctrl+C, or the system, ended the run.
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
            merges: swarm.split.entries.clone(),
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
    /// Returns `true` for an honest daemon that left in order.
    pub(super) fn counts(&self) -> bool {
        self.reported() && self.lies.is_empty()
    }

    /// Returns `true` if it left in order: its last report is here.
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

/// Distances of every model from the mean of all:
///
/// `d_i = || theta_i - (1 / K) sum_k theta_k ||` (Euclidean; theta: `[P]`, f32).
///
/// The consensus distance is the mean of the `d_i`. A directory without a readable checkpoint of
/// the same size as the first gives `None`. K = 1 gives zero.
fn distances(dirs: &[&Path]) -> Vec<Option<f64>> {
    let models: Vec<Option<Vec<f32>>> = dirs.iter().map(|dir| parameters(dir)).collect();
    let Some(len) = models.iter().flatten().map(Vec::len).next() else {
        return vec![None; dirs.len()];
    };
    let same: Vec<&Vec<f32>> = models.iter().flatten().filter(|m| m.len() == len).collect();
    let mut mean = vec![0f64; len];
    for model in &same {
        for (sum, value) in mean.iter_mut().zip(model.iter()) {
            *sum += f64::from(*value);
        }
    }
    let count = same.len() as f64;
    mean.iter_mut().for_each(|sum| *sum /= count);
    let distance = |model: &Vec<f32>| {
        let squares = model
            .iter()
            .zip(&mean)
            .map(|(v, m)| (f64::from(*v) - m).powi(2));
        squares.sum::<f64>().sqrt()
    };
    models
        .iter()
        .map(|m| m.as_ref().filter(|m| m.len() == len).map(distance))
        .collect()
}

/// The parameters from which a daemon would continue.
fn parameters(dir: &Path) -> Option<Vec<f32>> {
    let checkpoint = Checkpoint::open(dir).ok()??;
    let mut values = vec![0.0; checkpoint.len()];
    for store in ["anchor", "parameters"] {
        if checkpoint.read_store(store, &mut values).ok()? {
            return Some(values);
        }
    }
    None
}

/// The report as a table.
pub fn table(report: &LocalReport) -> Table {
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
            name_of(node),
            status_of(node),
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
    table
}

/// What else is to be said of a run, one line each.
pub fn notes(report: &LocalReport) -> Vec<String> {
    let without = report.nodes.iter().filter_map(|node| {
        let text = node.report.no_result.in_words()?;
        Some(format!("daemon {}: {text}", node.node))
    });
    without.chain(report.stranger.iter().map(tried)).collect()
}

fn tried(stranger: &StrangerEntry) -> String {
    format!(
        "stranger: {} identities, turned away {} times, {} links; {} silent connections, {} datagrams; {} of \
         {} HTTP requests answered",
        stranger.identities,
        stranger.turned_away,
        stranger.links,
        stranger.silent,
        stranger.datagrams,
        stranger.answered,
        stranger.requests,
    )
}

/// A daemon's number, and its ranks if they are several.
fn name_of(node: &NodeEntry) -> String {
    match node.report.ranks {
        ranks @ 2.. => format!("{} ({ranks} ranks)", node.node),
        _ => node.node.to_string(),
    }
}

/// How it ended, with its lies and with its rounds that had no result.
fn status_of(node: &NodeEntry) -> String {
    let without = node.report.no_result.count();
    let without = (without > 0).then(|| format!("{without} without result"));
    let lies = (!node.lies.is_empty()).then(|| format!("lies: {}", node.lies.join(", ")));
    let also: Vec<String> = without.into_iter().chain(lies).collect();
    if also.is_empty() {
        return node.status.clone();
    }
    format!("{} ({})", node.status, also.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Traffic, WithoutResult};
    use crate::report::NodeReport;
    use crate::store::{CheckpointWriter, Expected, Manifest};
    use murmurate_protocol::{PlanHash, RunId};
    use murmurate_strategies::Layout;
    use murmurate_strategies::state::StateSink;
    use std::sync::Arc;

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
    fn rounds_without_a_result_are_counted_with_the_reason() {
        let mut report = report();
        assert!(notes(&report).is_empty());
        let none = &mut report.nodes[1].report.no_result;
        none.rounds = WithoutResult { void: 2, alone: 1 };
        let line = "daemon 1: 3 rounds had no result: 1 in which no group formed, 2 whose group agreed on no \
                    result in time";
        assert_eq!(notes(&report), [line]);
        report.nodes[1].report.no_result.why = Some("Daemon ab is gone.".to_owned());
        assert_eq!(notes(&report), [format!("{line}; why: Daemon ab is gone.")]);
        let shown = table(&report).to_string();
        assert!(shown.contains("finished (3 without result)"), "{shown}");
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["nodes"][1]["void_rounds"], 2);
        assert_eq!(value["nodes"][0]["alone_rounds"], 0);
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

    fn save(values: &[f32]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let layout = Arc::new(Layout::new([("w", vec![values.len() as u64])]));
        let writer = CheckpointWriter::begin(dir.path(), 1, Arc::clone(&layout)).unwrap();
        let mut sink = writer.sink("mix").unwrap();
        sink.tensor("anchor", values).unwrap();
        let expected = Expected {
            run: RunId::from_bytes([0; 32]),
            plan: PlanHash::from_bytes([0; 32]),
            layout: layout.hash(),
        };
        let manifest = Manifest::new(&expected, 1, layout.tensors());
        let files = vec![sink.finish().unwrap()];
        writer.commit(manifest, files).unwrap();
        dir
    }

    #[test]
    fn distances_are_those_from_the_mean() {
        let (a, b, empty) = (
            save(&[0.0, 0.0]),
            save(&[6.0, 8.0]),
            tempfile::tempdir().unwrap(),
        );
        let found = distances(&[a.path(), empty.path(), b.path()]);
        assert_eq!(found, [Some(5.0), None, Some(5.0)]);
        assert_eq!(distances(&[a.path()]), [Some(0.0)]);
        assert_eq!(distances(&[empty.path()]), [None]);
    }
}
