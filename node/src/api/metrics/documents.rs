//! The page `docs/metrics.md` is written from the metrics themselves, and dashboard and alert rules name
//! only metrics that exist.
//!
//! `UPDATE_DOCS=1 cargo test -p murmurate-node --lib documents` writes the page.

use super::{MetricsFormat, metrics_text};
use crate::api::status::{NatStatus, PeerStatus, WaitStatus};
use crate::api::{
    Basis, EvaluationStatus, LinkStatus, Memory, PredictedStatus, Presence, RoundStatus,
    ServingStatus, Status,
};
use murmurate_protocol::{SortedMap, SortedSet};
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/metrics.md";

/// Folders whose files name metrics.
const USERS: [&str; 2] = ["deploy/grafana", "deploy/prometheus"];

/// What the text before the table says.
const INTRODUCTION: &str = "# Metrics

<!-- Written by `UPDATE_DOCS=1 cargo test -p murmurate-node --lib documents`; do not edit. -->

Every metric that `/metrics` of a daemon can show. A value that the daemon does not know yet is left out.
[Running daemons](operations.md#metrics) says how to scrape it, and [monitoring](monitoring.md) how to watch it
with Prometheus and Grafana. Labels have few values: the label `peer` has at most one for each peer that the
daemon has met, and `name` is what that peer calls itself, or the beginning of its id.

";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of a daemon that knows everything.
fn full() -> String {
    let link = LinkStatus {
        bulk: "quic",
        rtt_s: Some(0.1),
        min_rtt_s: Some(0.1),
        delivery_bytes_per_s: Some(1.0),
        push_bytes_per_s: Some(1),
        loss: Some(0.0),
        lost_bytes: Some(0),
        congestion_window: Some(1),
        queueing_s: Some(0.0),
        ..LinkStatus::default()
    };
    let peer = PeerStatus {
        presence: Presence::Linked,
        link: Some(link),
        ..PeerStatus::default()
    };
    let round = RoundStatus {
        utilization: 1.0,
        round_s: 1.0,
        train_s: 1.0,
        inner_steps: 1.0,
        bytes_sent: 1.0,
        bytes_received: 1.0,
        bytes_per_hour: 1.0,
        memory_bytes: Some(1.0),
    };
    let from = Basis {
        step_s: 1.0,
        latency_s: 1.0,
        link_bytes_per_s: 1.0,
        peers: 2,
    };
    let status = Status {
        loss: Some(1.0),
        evaluation: Some(EvaluationStatus {
            accuracy: Some(1.0),
            named: [("f1".to_owned(), 1.0)].into(),
            ..EvaluationStatus::default()
        }),
        longest_wait: Some(WaitStatus {
            what: "ready".to_owned(),
            waited_s: 1.0,
            deadline_s: 2.0,
        }),
        saved_round: Some(1),
        nat: NatStatus {
            serving: Some(ServingStatus::default()),
            ..NatStatus::default()
        },
        memory: Memory::measure(1, &std::collections::BTreeMap::new()),
        predicted: Some(PredictedStatus { from, round }),
        measured: Some(round),
        peers: SortedMap::from([("ab".to_owned(), peer)]),
        ..Status::default()
    };
    metrics_text(&status, MetricsFormat::Classic)
}

struct Described {
    name: String,
    kind: String,
    help: String,
    labels: Vec<String>,
}

fn described(text: &str) -> Vec<Described> {
    let mut all: Vec<Described> = Vec::new();
    let mut help = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').unwrap().1.trim_end_matches('.');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            all.push(Described {
                name: name.to_owned(),
                kind: kind.to_owned(),
                help: help.to_owned(),
                labels: Vec::new(),
            });
        } else if let Some((_, labels)) = line.split_once('{') {
            let last = all.last_mut().unwrap();
            let (labels, _) = labels.split_once('}').unwrap();
            for (label, _) in labels.split(',').filter_map(|pair| pair.split_once('=')) {
                if !last.labels.iter().any(|known| known == label) {
                    last.labels.push(label.to_owned());
                }
            }
        }
    }
    all
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "| metric | type | labels | meaning |\n|---|---|---|---|\n";
    for metric in described(&full()) {
        let labels: Vec<String> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
        let Described {
            name, kind, help, ..
        } = metric;
        page += &format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", "));
    }
    page
}

#[test]
fn the_page_lists_every_metric() {
    let path = root().join(PAGE);
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page,
        "{PAGE} is stale: UPDATE_DOCS=1 cargo test -p murmurate-node --lib documents"
    );
}

/// The names of this project's and the process's metrics in a text.
fn named(text: &str) -> SortedSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = |word: &&str| word.starts_with("murmurate_") || word.starts_with("process_");
    words.filter(ours).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_that_exist() {
    let exist: SortedSet<String> = described(&full()).into_iter().map(|m| m.name).collect();
    let mut used = 0;
    for folder in USERS {
        let before = used;
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let names = named(&text);
            used += names.len();
            let wrong: Vec<_> = names.difference(&exist).collect();
            assert!(wrong.is_empty(), "{}: no metric {wrong:?}", path.display());
        }
        assert!(used > before, "no file in {folder} names a metric");
    }
}
