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
    registry.register("daemon", "Which daemon this is", Info::new(about));
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
        ("samples", "Samples seen", status.samples),
        (
            "catch_ups",
            "States taken over from the swarm",
            status.catch_ups,
        ),
        ("voids", "Exchanges that were given up", status.voids),
        (
            "alone",
            "Times that no group came about and the round went on",
            status.alone,
        ),
        (
            "expired_waits",
            "Waits that ended by their deadline",
            status.expired_waits,
        ),
        (
            "mass_uncertain",
            "Transfers of which it is not known whether they arrived",
            status.mass_uncertain,
        ),
        (
            "misbehaved",
            "Rules broken by other peers",
            status.misbehaved,
        ),
        ("work_failed", "Own orders that failed", status.work_failed),
    ];
    for (name, help, value) in all {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

fn gauges(registry: &mut Registry, status: &Status) {
    let of_training = [
        ("round", "The round under way", Some(status.round as f64)),
        (
            "inner_steps_per_second",
            "Rate of the last rounds",
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
            ("test_loss", "Loss on held data, nats", Some(e.loss)),
            (
                "test_accuracy",
                "Share of held samples that are right",
                e.accuracy,
            ),
        ]
    });
    let of_waits = status.longest_wait.as_ref().map(|w| {
        [
            ("longest_wait_seconds", "The longest wait", Some(w.waited_s)),
            (
                "longest_wait_deadline_seconds",
                "Its deadline",
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
        "Share of a round in training, expected",
    ),
    ("predicted_round_seconds", "A round, expected"),
    (
        "predicted_sent_bytes_per_round",
        "Encoded bytes sent in a round, expected",
    ),
    (
        "predicted_received_bytes_per_round",
        "Encoded bytes received in a round, expected",
    ),
    (
        "predicted_memory_bytes",
        "Memory of the model and its method, expected",
    ),
];

const MEASURED: RoundNames = [
    (
        "measured_utilization",
        "Share of the last rounds in training",
    ),
    ("measured_round_seconds", "A round, mean of the last ones"),
    (
        "measured_sent_bytes_per_round",
        "Encoded bytes sent in a round, mean of the last ones",
    ),
    (
        "measured_received_bytes_per_round",
        "Encoded bytes received in a round, mean of the last ones",
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
        ("peers_linked", "Peers that are there", Some(linked as f64)),
        (
            "peers_suspected",
            "Peers that let a deadline pass",
            Some(suspected as f64),
        ),
        ("rss_bytes", "Resident memory", whole(memory.rss_bytes)),
        (
            "peak_rss_bytes",
            "Most resident memory",
            whole(memory.peak_rss_bytes),
        ),
        (
            "overhead_bytes",
            "Memory not explained",
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
    let help = "Whether others can dial this daemon: 1 for the state it is in";
    registry.register("reachability", help, reachability);
    let paths = Family::<PathLabel, Gauge>::default();
    for path in ["direct", "punched", "relayed"] {
        let on_it = |p: &&PeerStatus| p.linked && p.path.as_ref().is_some_and(|p| p.kind == path);
        let count = status.peers.values().filter(on_it).count();
        paths.get_or_create(&PathLabel { path }).set(count as i64);
    }
    registry.register("links", "Peers that are there, by the way to them", paths);
    let serving = |of: fn(ServingStatus) -> u64| nat.serving.map(|serving| of(serving) as f64);
    let gauges = [
        (
            "relays_reserved",
            "Relays that others reach this daemon through",
            Some(nat.relays.len() as f64),
        ),
        (
            "relay_reservations",
            "Peers that are reached through this daemon",
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
        ("punched", "Links made direct by punched holes", nat.punched),
        (
            "punches_failed",
            "Attempts to punch a hole that failed",
            nat.punches_failed,
        ),
        (
            "relay_refused",
            "Requests to relay that were refused",
            refused,
        ),
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
