//! The status as Prometheus text. Every scrape builds it from the status, so `/metrics` and
//! `/status` agree.

#[cfg(test)]
mod documents;
mod format;
mod help;
mod page;
mod process;

pub(crate) use format::MetricsFormat;

use super::why::words::short;
use super::{LinkStatus, PeerStatus, RoundStatus, ServingStatus, Status, Traffic, TroubleKind};
use crate::net::Reachability;
use murmurate_protocol::Phase;
use page::{Label, Page, Sample, Value, labelled};
use prometheus_client::encoding::text;
use prometheus_client::metrics::info::Info;

pub(crate) fn metrics_text(status: &Status, format: MetricsFormat) -> String {
    let mut page = Page::with_prefix("murmurate");
    let name = called(status.name.as_ref(), &status.peer);
    let about = [
        ("version", status.version.clone()),
        ("peer", status.peer.clone()),
        ("name", name),
        ("run", status.run.clone()),
        ("preset", status.preset.clone()),
    ];
    let help = "Version, peer, run and preset of this daemon";
    page.0.register("daemon", help, Info::new(about));
    totals(&mut page, status);
    present(&mut page, status);
    state(&mut page, status);
    nat(&mut page, status);
    links(&mut page, status);
    let mut of_process = Page::with_prefix("process");
    process::add(&mut of_process, &status.memory);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = text::encode_registry(&mut out, &page.0)
        .and_then(|()| text::encode_registry(&mut out, &of_process.0))
        .and_then(|()| text::encode_eof(&mut out));
    match format {
        MetricsFormat::OpenMetrics => out,
        MetricsFormat::Classic => format::classic(&out),
    }
}

/// Display name of a daemon: its name, or the beginning of its id.
fn called(name: Option<&String>, id: &str) -> String {
    name.cloned().unwrap_or_else(|| short(id))
}

fn totals(page: &mut Page, status: &Status) {
    page.count("rounds_ended", status.rounds_ended);
    page.count("inner_steps", status.inner_steps);
    page.count("samples", status.samples);
    page.count("skipped_records", status.skipped_records);
    page.count("catch_ups", status.unusual.catch_ups);
    page.count("voids", status.unusual.voids);
    page.count("alone", status.unusual.alone);
    page.count("expired_waits", status.unusual.expired_waits);
    page.count("mass_uncertain", status.unusual.mass_uncertain);
    page.count("misbehaved", status.unusual.misbehaved);
    page.count("refused", status.unusual.refused);
    page.count("work_failed", status.unusual.work_failed);
    page.count("saves_failed", status.unusual.saves_failed);
    page.seconds("train_seconds", status.train_s);
    page.seconds("wait_seconds", status.wait_s);
    page.seconds("exchange_seconds", status.exchange_s);
    page.seconds("wall_seconds", status.wall_s);
}

fn present(page: &mut Page, status: &Status) {
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    page.measure("round", Some(status.round as f64));
    page.measure("rounds", Some(status.rounds as f64));
    page.measure("saved_round", whole(status.saved_round));
    page.measure("inner_steps_per_second", Some(status.inner_steps_per_s));
    page.measure("loss", status.loss);
    let privacy = status.privacy.and_then(|it| it.promise);
    page.measure("privacy_epsilon", privacy.and_then(|it| it.epsilon));
    page.measure(
        "privacy_contributions_left",
        whole(privacy.and_then(|it| it.left)),
    );
    let found = status.evaluation.as_ref();
    page.measure("test_loss", found.map(|found| found.loss));
    page.measure("test_accuracy", found.and_then(|found| found.accuracy));
    let named = found.iter().flat_map(|found| &found.named);
    let named = named.map(|(name, value)| (vec![("score", name.clone())], Value::Measure(*value)));
    page.gauge("test_score", named);
    let wait = status.longest_wait.as_ref();
    page.measure("longest_wait_seconds", wait.map(|wait| wait.waited_s));
    let deadline = wait.map(|wait| wait.deadline_s);
    page.measure("longest_wait_deadline_seconds", deadline);
    of_round(page, "predicted", status.predicted.map(|it| it.round));
    of_round(page, "measured", status.measured);
    let suspected = status.peers.values().filter(|p| p.suspected).count();
    let memory = &status.memory;
    page.measure("peers_linked", Some(status.linked() as f64));
    page.measure("peers_suspected", Some(suspected as f64));
    page.measure("rss_bytes", whole(memory.rss_bytes));
    page.measure("peak_rss_bytes", whole(memory.peak_rss_bytes));
    let overhead = memory.overhead_bytes.map(|bytes| bytes as f64);
    page.measure("overhead_bytes", overhead);
    page.measure("parameters", Some(memory.parameters as f64));
}

/// The cost of a round, as far as it is known.
fn of_round(page: &mut Page, kind: &str, round: Option<RoundStatus>) {
    let of = |value: fn(RoundStatus) -> f64| round.map(value);
    for (name, value) in [
        ("utilization", of(|round| round.utilization)),
        ("round_seconds", of(|round| round.round_s)),
        ("sent_bytes_per_round", of(|round| round.bytes_sent)),
        ("received_bytes_per_round", of(|round| round.bytes_received)),
        ("memory_bytes", round.and_then(|round| round.memory_bytes)),
    ] {
        page.measure(&format!("{kind}_{name}"), value);
    }
}

/// The phase of the round, the troubles, the traffic, and the fates of this daemon's contributions.
fn state(page: &mut Page, status: &Status) {
    let phase = |phase: Phase| {
        let word = phase.word();
        labelled("phase", word, u64::from(word == status.phase))
    };
    page.gauge("phase", Phase::ALL.map(phase));
    let trouble = |kind: TroubleKind| {
        let is_there = status.troubles.iter().any(|trouble| trouble.kind == kind);
        labelled("kind", kind.word(), u64::from(is_there))
    };
    page.gauge("trouble", TroubleKind::ALL.map(trouble));
    let traffic = bytes(&[], status.bytes_sent, status.bytes_received);
    page.counter("bytes", traffic);
    let totals = &status.contributions;
    let rounds = [
        ("counted", totals.counted),
        ("partly", totals.partly),
        ("left_out", totals.left_out),
        ("absent", totals.absent),
    ];
    let rounds = rounds.map(|(standing, rounds)| labelled("standing", standing, rounds));
    page.counter("contributions", rounds);
}

/// Bytes in both directions at each point of their way, with labels that say which.
fn bytes(labels: &[Label], sent: Traffic, received: Traffic) -> Vec<Sample> {
    let mut all = Vec::new();
    for (direction, traffic) in [("sent", sent), ("received", received)] {
        for (kind, bytes) in [
            ("payload", traffic.payload),
            ("encoded", traffic.encoded),
            ("wire", traffic.wire),
        ] {
            let mut labels = labels.to_vec();
            labels.push(("direction", direction.to_owned()));
            labels.push(("kind", kind.to_owned()));
            all.push((labels, Value::Count(bytes)));
        }
    }
    all
}

/// Reachability, hole punching and relays.
fn nat(page: &mut Page, status: &Status) {
    let nat = &status.nat;
    let state = |state: Reachability| {
        let here = u64::from(nat.reachability == state.name());
        labelled("state", state.name(), here)
    };
    page.gauge("reachability", Reachability::ALL.map(state));
    let path = |path: &str| {
        let on_it =
            |p: &&PeerStatus| p.is_linked() && p.path.as_ref().is_some_and(|p| p.kind == path);
        labelled(
            "path",
            path,
            status.peers.values().filter(on_it).count() as u64,
        )
    };
    page.gauge("links", ["direct", "punched", "relayed"].map(path));
    let serving = |of: fn(ServingStatus) -> u64| nat.serving.map(|serving| of(serving) as f64);
    page.measure("relays_reserved", Some(nat.relays.len() as f64));
    page.measure("relay_reservations", serving(|s| s.reservations));
    page.measure("relay_circuits", serving(|s| s.circuits));
    page.count("punched", nat.punched);
    page.count("punches_failed", nat.punches_failed);
    let refused = nat.serving.map_or(0, |serving| serving.refused);
    page.count("relay_refused", refused);
}

fn links(page: &mut Page, status: &Status) {
    let up = status.peers.iter().filter_map(|(id, peer)| {
        let name = called(peer.name.as_ref(), id);
        let labels = vec![("peer", id.clone()), ("name", name)];
        Some((labels, peer.link.as_ref()?))
    });
    let up: Vec<(Vec<Label>, &LinkStatus)> = up.collect();
    type Read = fn(&LinkStatus) -> Option<f64>;
    let measures: [(&str, Read); 7] = [
        ("link_rtt_seconds", |l| l.rtt_s),
        ("link_min_rtt_seconds", |l| l.min_rtt_s),
        ("link_delivery_bytes_per_second", |l| l.delivery_bytes_per_s),
        ("link_push_bytes_per_second", |l| {
            Some(l.push_bytes_per_s? as f64)
        }),
        ("link_loss_ratio", |l| l.loss),
        ("link_congestion_window_bytes", |l| {
            Some(l.congestion_window? as f64)
        }),
        ("link_queueing_seconds", |l| l.queueing_s),
    ];
    for (name, read) in measures {
        let known = up.iter().filter_map(|(labels, link)| {
            let value = read(link)?;
            Some((labels.clone(), Value::Measure(value)))
        });
        page.gauge(name, known);
    }
    let lost = up.iter().filter_map(|(labels, link)| {
        let bytes = link.lost_bytes?;
        Some((labels.clone(), Value::Count(bytes)))
    });
    page.counter("link_lost_bytes", lost);
    let transports = up.iter().map(|(labels, link)| {
        let mut labels = labels.clone();
        labels.push(("bulk", link.bulk.to_owned()));
        (labels, Value::Count(1))
    });
    page.gauge("link_bulk", transports);
    let traffic = up
        .iter()
        .map(|(labels, link)| bytes(labels, link.sent, link.received));
    page.counter("link_bytes", traffic.flatten());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::status::{NatStatus, PathStatus};
    use crate::api::{PeerTotals, Presence};
    use crate::tests::assert_has;
    use murmurate_protocol::SortedMap;

    #[test]
    fn the_text_has_values_and_labels() {
        let punched = PeerStatus {
            presence: Presence::Linked,
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
            peers: SortedMap::from([("ab".to_owned(), punched)]),
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
        assert_has(&text, "# TYPE murmurate_daemon_info gauge\n");
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
