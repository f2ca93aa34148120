//! The report of a local swarm as a table for the terminal.

use super::node_entry::NodeEntry;
use super::report::LocalReport;
use super::stranger::StrangerEntry;
use crate::progress::{bytes, duration};
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};

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
    report.stranger.iter().map(tried).collect()
}

/// What a stranger tried, in one line.
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

/// The status of a daemon, and its lies.
fn status_of(node: &NodeEntry) -> String {
    match node.lies.is_empty() {
        true => node.status.clone(),
        false => format!("{} (lies: {})", node.status, node.lies.join(", ")),
    }
}
