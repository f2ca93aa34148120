//! The status as Prometheus text. Every scrape builds it from the status, so `/metrics` and
//! `/status` agree.

mod classic;
#[cfg(test)]
mod documents;
mod format;
mod nat;
mod phase;
mod process;
mod rounds;
mod values;

pub use format::MetricsFormat;

use super::{Status, Traffic, link};
use process::Process;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use rounds::{MEASURED, PREDICTED, of_round};
use values::{count, set};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StandingLabel {
    standing: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByteLabels {
    direction: &'static str,
    kind: &'static str,
}

/// The text of `/metrics`.
pub fn metrics_text(status: &Status, format: MetricsFormat) -> String {
    let mut registry = Registry::with_prefix("murmurate");
    let about = vec![
        ("version".to_owned(), status.version.clone()),
        ("peer".to_owned(), status.peer.clone()),
        (
            "name".to_owned(),
            called(status.name.as_ref(), &status.peer),
        ),
        ("run".to_owned(), status.run.clone()),
        ("preset".to_owned(), status.preset.clone()),
    ];
    registry.register(
        "daemon",
        "Version, peer, run and preset of this daemon",
        Info::new(about),
    );
    counters(&mut registry, status);
    seconds(&mut registry, status);
    gauges(&mut registry, status);
    phase::register(&mut registry, &status.phase);
    phase::register_troubles(&mut registry, &status.troubles);
    bytes(&mut registry, status);
    contributions(&mut registry, status);
    nat::register(&mut registry, status);
    let links = status.peers.iter().filter_map(|(id, peer)| {
        let name = called(peer.name.as_ref(), id);
        Some((id.as_str(), name, peer.link.as_ref()?))
    });
    link::register(&mut registry, &links.collect::<Vec<_>>());
    let mut of_process = Registry::with_prefix("process");
    process::register(&mut of_process, &Process::measure(), &status.memory);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = text::encode_registry(&mut out, &registry)
        .and_then(|()| text::encode_registry(&mut out, &of_process))
        .and_then(|()| text::encode_eof(&mut out));
    match format {
        MetricsFormat::OpenMetrics => out,
        MetricsFormat::Classic => classic::of(&out),
    }
}

/// What a daemon is called: by its name, or by the beginning of its id.
fn called(name: Option<&String>, id: &str) -> String {
    let begin = || id.chars().take(8).collect();
    name.cloned().unwrap_or_else(begin)
}

fn counters(registry: &mut Registry, status: &Status) {
    let all = [
        ("rounds_ended", "Rounds ended", status.rounds_ended),
        ("inner_steps", "Inner steps taken", status.inner_steps),
        ("samples", "Samples trained on", status.samples),
        (
            "skipped_records",
            "Records of the data left out because they cannot be read",
            status.skipped_records,
        ),
        (
            "catch_ups",
            "States fetched from the swarm",
            status.catch_ups,
        ),
        (
            "voids",
            "Exchanges that ended without a result at this daemon; others may have decided some of them",
            status.voids,
        ),
        (
            "alone",
            "Attempts without a group, after which the round continued",
            status.alone,
        ),
        (
            "expired_waits",
            "Waits that ended at their deadline",
            status.expired_waits,
        ),
        (
            "mass_uncertain",
            "Transfers that may have lost or doubled push-sum weight",
            status.mass_uncertain,
        ),
        (
            "misbehaved",
            "Violations of the protocol by other peers",
            status.misbehaved,
        ),
        (
            "refused",
            "Refusals: of peers by this daemon, and of this daemon by peers",
            status.refused,
        ),
        (
            "work_failed",
            "Work orders that failed in this daemon",
            status.work_failed,
        ),
        (
            "saves_failed",
            "Checkpoints that could not be written",
            status.saves_failed,
        ),
    ];
    for (name, help, value) in all {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

fn seconds(registry: &mut Registry, status: &Status) {
    let seconds = [
        ("train_seconds", "Time in inner steps", status.train_s),
        (
            "wait_seconds",
            "Time in which rounds waited until other peers were as far",
            status.wait_s,
        ),
        (
            "exchange_seconds",
            "Time of exchanges apart from that",
            status.exchange_s,
        ),
        ("wall_seconds", "Time since the first round", status.wall_s),
    ];
    for (name, help, value) in seconds {
        count(registry, name, help, value);
    }
}

fn gauges(registry: &mut Registry, status: &Status) {
    let of_training = [
        ("round", "The current round", Some(status.round as f64)),
        (
            "rounds",
            "Rounds of the run; 0 if it ends only when it is told to",
            Some(status.rounds as f64),
        ),
        (
            "saved_round",
            "The round of the last checkpoint that this process wrote",
            status.saved_round.map(|round| round as f64),
        ),
        (
            "inner_steps_per_second",
            "Inner steps per second over the last rounds",
            Some(status.inner_steps_per_s),
        ),
        (
            "loss",
            "Mean training loss of the last round, nats",
            status.loss,
        ),
    ];
    let of_held_data = status.evaluation.map(|e| {
        [
            ("test_loss", "Loss on held-out data, nats", Some(e.loss)),
            (
                "test_accuracy",
                "Fraction of correct predictions on held-out data",
                e.accuracy,
            ),
        ]
    });
    let of_waits = status.longest_wait.as_ref().map(|w| {
        [
            ("longest_wait_seconds", "The longest wait", Some(w.waited_s)),
            (
                "longest_wait_deadline_seconds",
                "The deadline of the longest wait",
                Some(w.deadline_s),
            ),
        ]
    });
    set(registry, of_training);
    set(registry, of_held_data.into_iter().flatten());
    set(registry, of_waits.into_iter().flatten());
    let predicted = status.predicted.map(|predicted| predicted.round);
    set(registry, of_round(PREDICTED, predicted));
    set(registry, of_round(MEASURED, status.measured));
    state_gauges(registry, status);
}

fn state_gauges(registry: &mut Registry, status: &Status) {
    let whole = |v: Option<u64>| v.map(|v| v as f64);
    let linked = status.peers.values().filter(|p| p.linked).count();
    let suspected = status.peers.values().filter(|p| p.suspected).count();
    let memory = &status.memory;
    let all = [
        ("peers_linked", "Linked peers", Some(linked as f64)),
        (
            "peers_suspected",
            "Peers that missed a deadline and were not heard from since",
            Some(suspected as f64),
        ),
        ("rss_bytes", "Resident memory", whole(memory.rss_bytes)),
        (
            "peak_rss_bytes",
            "Peak resident memory",
            whole(memory.peak_rss_bytes),
        ),
        (
            "overhead_bytes",
            "Resident memory beyond the stores of the method",
            memory.overhead_bytes.map(|v| v as f64),
        ),
        (
            "parameters",
            "Parameters of the model",
            Some(memory.parameters as f64),
        ),
    ];
    set(registry, all);
}

/// What happened to this daemon's contributions.
fn contributions(registry: &mut Registry, status: &Status) {
    let family = Family::<StandingLabel, Counter>::default();
    let totals = &status.contributions;
    for (standing, rounds) in [
        ("counted", totals.counted),
        ("partly", totals.partly),
        ("left_out", totals.left_out),
        ("absent", totals.absent),
    ] {
        let counter = family.get_or_create(&StandingLabel { standing });
        counter.inc_by(rounds);
    }
    let help = "Rounds by what happened to this daemon's contribution";
    registry.register("contributions", help, family);
}

fn bytes(registry: &mut Registry, status: &Status) {
    let family = Family::<ByteLabels, Counter>::default();
    let count = |direction, traffic: &Traffic| {
        let kinds = [
            ("payload", traffic.payload),
            ("encoded", traffic.encoded),
            ("wire", traffic.wire),
        ];
        for (kind, bytes) in kinds {
            family
                .get_or_create(&ByteLabels { direction, kind })
                .inc_by(bytes);
        }
    };
    count("sent", &status.bytes_sent);
    count("received", &status.bytes_received);
    registry.register(
        "bytes",
        "Bytes before the codec, after it, and on the wire",
        family,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PeerTotals;
    use crate::api::status::{NatStatus, PathStatus, PeerStatus};
    use std::collections::BTreeMap;

    #[test]
    fn the_text_has_values_and_labels() {
        let punched = PeerStatus {
            linked: true,
            path: Some(PathStatus {
                kind: "punched".to_owned(),
                ..PathStatus::default()
            }),
            ..PeerStatus::default()
        };
        let status = Status {
            inner_steps: 42,
            loss: Some(0.5),
            bytes_sent: Traffic {
                payload: 4,
                encoded: 1,
                wire: 2,
            },
            phase: "paused".to_owned(),
            wait_s: 1.5,
            contributions: PeerTotals {
                counted: 5,
                left_out: 2,
                ..PeerTotals::default()
            },
            nat: NatStatus {
                reachability: "private".to_owned(),
                punched: 3,
                ..NatStatus::default()
            },
            peers: BTreeMap::from([("ab".to_owned(), punched)]),
            ..Status::default()
        };
        let text = metrics_text(&status, MetricsFormat::OpenMetrics);
        for line in [
            "murmurate_inner_steps_total 42",
            "murmurate_loss 0.5",
            "murmurate_phase{phase=\"paused\"} 1",
            "murmurate_wait_seconds_total 1.5",
            "murmurate_contributions_total{standing=\"counted\"} 5",
            "murmurate_contributions_total{standing=\"left_out\"} 2",
            "murmurate_reachability{state=\"private\"} 1",
            "murmurate_reachability{state=\"public\"} 0",
            "murmurate_links{path=\"punched\"} 1",
            "murmurate_links{path=\"relayed\"} 0",
            "murmurate_punched_total 3",
            "murmurate_bytes_total{direction=\"sent\",kind=\"wire\"} 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("murmurate_test_accuracy"));
        assert!(text.ends_with("# EOF\n"));
    }

    /// What the tool of Prometheus accepts, and what its text format demands: every sample belongs to
    /// the family that was described before it, and counters have `_total` in all lines.
    #[test]
    fn the_classic_text_has_no_types_of_openmetrics() {
        let text = metrics_text(&Status::default(), MetricsFormat::Classic);
        let mut family = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(matches!(kind, "counter" | "gauge"), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert_eq!(name, family, "described before its type");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split(' ').next().unwrap();
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                assert_eq!(name, family, "{line}");
            }
        }
        assert!(
            text.contains("# TYPE murmurate_daemon_info gauge\n"),
            "{text}"
        );
        assert!(!text.contains("EOF"));
    }

    /// Needs the tool; without it there is nothing to ask.
    #[test]
    fn promtool_accepts_the_classic_text() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let mut promtool = Command::new("promtool");
        promtool.args(["check", "metrics"]);
        promtool.stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = promtool.stderr(Stdio::piped()).spawn() else {
            println!("promtool is not installed: not checked");
            return;
        };
        let text = metrics_text(&Status::default(), MetricsFormat::Classic);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}\n{text}");
    }
}
