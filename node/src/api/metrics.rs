//! The status as Prometheus text. Every scrape builds it from the status, so `/metrics` and
//! `/status` agree.

use super::status::{PeerStatus, ServingStatus};
use super::{RoundStatus, Status, Traffic, link};
use crate::net::Reachability;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByteLabels {
    direction: &'static str,
    kind: &'static str,
}

/// The text of `/metrics`.
pub fn metrics_text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("murmurate");
    let about = vec![
        ("version".to_owned(), status.version.clone()),
        ("peer".to_owned(), status.peer.clone()),
        ("run".to_owned(), status.run.clone()),
        ("preset".to_owned(), status.preset.clone()),
    ];
    registry.register(
        "daemon",
        "Version, peer, run and preset of this daemon",
        Info::new(about),
    );
    counters(&mut registry, status);
    gauges(&mut registry, status);
    bytes(&mut registry, status);
    nat(&mut registry, status);
    let links = status.peers.iter();
    let links = links.filter_map(|(peer, status)| Some((peer.as_str(), status.link.as_ref()?)));
    link::register(&mut registry, &links.collect());
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = text::encode(&mut out, &registry);
    out
}

fn counters(registry: &mut Registry, status: &Status) {
    let all = [
        ("rounds_ended", "Rounds ended", status.rounds_ended),
        ("inner_steps", "Inner steps taken", status.inner_steps),
        ("samples", "Samples trained on", status.samples),
        (
            "catch_ups",
            "States fetched from the swarm",
            status.catch_ups,
        ),
        ("voids", "Exchanges without an agreed result", status.voids),
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
            "work_failed",
            "Work orders that failed in this daemon",
            status.work_failed,
        ),
    ];
    for (name, help, value) in all {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

fn gauges(registry: &mut Registry, status: &Status) {
    let of_training = [
        ("round", "The current round", Some(status.round as f64)),
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
        (
            "train_seconds",
            "Seconds in inner steps",
            Some(status.train_s),
        ),
        (
            "wall_seconds",
            "Seconds since the first round",
            Some(status.wall_s),
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
    process_gauges(registry, status);
}

/// Names and descriptions of the metrics of [`of_round`], in its order.
type RoundNames = [(&'static str, &'static str); 5];

const PREDICTED: RoundNames = [
    (
        "predicted_utilization",
        "Fraction of a round in training, predicted",
    ),
    ("predicted_round_seconds", "Duration of a round, predicted"),
    (
        "predicted_sent_bytes_per_round",
        "Encoded bytes sent in a round, predicted",
    ),
    (
        "predicted_received_bytes_per_round",
        "Encoded bytes received in a round, predicted",
    ),
    (
        "predicted_memory_bytes",
        "Memory of the model and its method, predicted",
    ),
];

const MEASURED: RoundNames = [
    (
        "measured_utilization",
        "Fraction of the last rounds in training",
    ),
    ("measured_round_seconds", "Mean duration of the last rounds"),
    (
        "measured_sent_bytes_per_round",
        "Mean encoded bytes sent in a round, over the last rounds",
    ),
    (
        "measured_received_bytes_per_round",
        "Mean encoded bytes received in a round, over the last rounds",
    ),
    ("measured_memory_bytes", "Resident memory"),
];

fn of_round(names: RoundNames, round: Option<RoundStatus>) -> impl Iterator<Item = Described> {
    let values = round.map(|round| {
        [
            Some(round.utilization),
            Some(round.round_s),
            Some(round.bytes_sent),
            Some(round.bytes_received),
            round.memory_bytes,
        ]
    });
    let described = move |values: [Option<f64>; 5]| names.into_iter().zip(values);
    let all = values.into_iter().flat_map(described);
    all.map(|((name, help), value)| (name, help, value))
}

fn process_gauges(registry: &mut Registry, status: &Status) {
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

type Described = (&'static str, &'static str, Option<f64>);

fn set(registry: &mut Registry, all: impl IntoIterator<Item = Described>) {
    for (name, help, value) in all {
        if let Some(value) = value {
            let gauge = Gauge::<f64, AtomicU64>::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        }
    }
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabel {
    path: &'static str,
}

fn nat(registry: &mut Registry, status: &Status) {
    let nat = &status.nat;
    let reachability = Family::<StateLabel, Gauge>::default();
    for state in Reachability::ALL {
        let here = i64::from(nat.reachability == state.name());
        let label = StateLabel {
            state: state.name(),
        };
        reachability.get_or_create(&label).set(here);
    }
    let help = "Whether others can dial this daemon: 1 for the current state";
    registry.register("reachability", help, reachability);
    let paths = Family::<PathLabel, Gauge>::default();
    for path in ["direct", "punched", "relayed"] {
        let on_it = |p: &&PeerStatus| p.linked && p.path.as_ref().is_some_and(|p| p.kind == path);
        let count = status.peers.values().filter(on_it).count();
        paths.get_or_create(&PathLabel { path }).set(count as i64);
    }
    registry.register("links", "Linked peers by path", paths);
    let serving = |of: fn(ServingStatus) -> u64| nat.serving.map(|serving| of(serving) as f64);
    let gauges = [
        (
            "relays_reserved",
            "Relays through which others reach this daemon",
            Some(nat.relays.len() as f64),
        ),
        (
            "relay_reservations",
            "Peers that are reachable through this daemon",
            serving(|s| s.reservations),
        ),
        (
            "relay_circuits",
            "Circuits through this daemon",
            serving(|s| s.circuits),
        ),
    ];
    set(registry, gauges);
    let refused = nat.serving.map_or(0, |serving| serving.refused);
    let counters = [
        (
            "punched",
            "Links that became direct by hole punching",
            nat.punched,
        ),
        (
            "punches_failed",
            "Failed attempts at hole punching",
            nat.punches_failed,
        ),
        ("relay_refused", "Refused requests to relay", refused),
    ];
    for (name, help, value) in counters {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::status::{NatStatus, PathStatus};
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
            nat: NatStatus {
                reachability: "private".to_owned(),
                punched: 3,
                ..NatStatus::default()
            },
            peers: BTreeMap::from([("ab".to_owned(), punched)]),
            ..Status::default()
        };
        let text = metrics_text(&status);
        for line in [
            "murmurate_inner_steps_total 42",
            "murmurate_loss 0.5",
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
}
