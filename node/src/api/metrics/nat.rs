//! Whether others reach the daemon, and what it relays for them.

use super::values::set;
use crate::api::Status;
use crate::api::status::{PeerStatus, ServingStatus};
use crate::net::Reachability;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabel {
    path: &'static str,
}

/// Registers the metrics of reachability, hole punching and relays.
pub(super) fn register(registry: &mut Registry, status: &Status) {
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
