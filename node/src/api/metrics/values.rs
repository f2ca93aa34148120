//! Registers single values under a name.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// A name, its description, and the value if it is known.
pub(super) type Described = (&'static str, &'static str, Option<f64>);

/// Registers the gauges whose values are known.
pub(super) fn set(registry: &mut Registry, all: impl IntoIterator<Item = Described>) {
    for (name, help, value) in all {
        if let Some(value) = value {
            let gauge = Gauge::<f64, AtomicU64>::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        }
    }
}

/// Registers a counter that is no whole number.
pub(super) fn count(registry: &mut Registry, name: &'static str, help: &'static str, value: f64) {
    let counter = Counter::<f64, AtomicU64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}
