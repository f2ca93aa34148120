//! The metrics: totals of the daemon, and the values of its last round.

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use std::sync::{Arc, Mutex, PoisonError};

/// Measurements of a daemon. Unknown ones are none, and are not exported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Values {
    /// Rounds that have ended.
    pub rounds: u64,
    /// Inner steps in all.
    pub inner_steps: u64,
    /// Samples in all.
    pub samples: u64,
    /// Bytes sent on the wire.
    pub bytes_sent: u64,
    /// Bytes received from the wire.
    pub bytes_received: u64,
    /// Linked peers.
    pub peers: u64,
    /// Seconds spent in inner steps.
    pub train_s: f64,
    /// Seconds of the last round.
    pub round_s: Option<f64>,
    /// Mean training loss of the last round, in nats.
    pub loss: Option<f64>,
    /// Loss on held-out data, in nats.
    pub test_loss: Option<f64>,
    /// Share of held-out samples that are classified correctly.
    pub test_accuracy: Option<f64>,
}

/// The values now, as every instrument reads them.
type Shared = Arc<Mutex<Values>>;

type Total = fn(&Values) -> u64;
type Last = fn(&Values) -> Option<f64>;

/// Totals that only grow: name, unit, meaning.
const TOTALS: [(&str, &str, &str, Total); 5] = [
    (
        "murmurate.rounds",
        "{round}",
        "Rounds that have ended",
        |v| v.rounds,
    ),
    ("murmurate.inner_steps", "{step}", "Inner steps", |v| {
        v.inner_steps
    }),
    ("murmurate.samples", "{sample}", "Samples", |v| v.samples),
    (
        "murmurate.bytes.sent",
        "By",
        "Bytes sent on the wire",
        |v| v.bytes_sent,
    ),
    (
        "murmurate.bytes.received",
        "By",
        "Bytes received from the wire",
        |v| v.bytes_received,
    ),
];

/// Values that go up and down.
const LAST: [(&str, &str, &str, Last); 5] = [
    ("murmurate.peers", "{peer}", "Linked peers", |v| {
        Some(v.peers as f64)
    }),
    (
        "murmurate.round.duration",
        "s",
        "Time of the last round",
        |v| v.round_s,
    ),
    (
        "murmurate.loss",
        "1",
        "Mean training loss of the last round, in nats",
        |v| v.loss,
    ),
    (
        "murmurate.test.loss",
        "1",
        "Loss on held-out data, in nats",
        |v| v.test_loss,
    ),
    (
        "murmurate.test.accuracy",
        "1",
        "Share of held-out samples that are classified correctly",
        |v| v.test_accuracy,
    ),
];

fn read(values: &Shared) -> Values {
    *values.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn register(provider: &SdkMeterProvider, values: &Shared) {
    let meter: Meter = provider.meter("murmurate");
    for (name, unit, meaning, of) in TOTALS {
        let values = Arc::clone(values);
        meter
            .u64_observable_counter(name)
            .with_unit(unit)
            .with_description(meaning)
            .with_callback(move |to| to.observe(of(&read(&values)), &[]))
            .build();
    }
    let seconds = Arc::clone(values);
    meter
        .f64_observable_counter("murmurate.train.time")
        .with_unit("s")
        .with_description("Time spent in inner steps")
        .with_callback(move |to| to.observe(read(&seconds).train_s, &[]))
        .build();
    for (name, unit, meaning, of) in LAST {
        let values = Arc::clone(values);
        meter
            .f64_observable_gauge(name)
            .with_unit(unit)
            .with_description(meaning)
            .with_callback(move |to| {
                let value = of(&read(&values)).filter(|value| value.is_finite());
                if let Some(value) = value {
                    to.observe(value, &[]);
                }
            })
            .build();
    }
}
