//! The metrics of one scrape: names, descriptions, labels and values.

use super::help;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

pub(super) type Label = (&'static str, String);

/// A value as the text has it: a count, or a measure with a decimal point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Count(u64),
    Measure(f64),
}

/// A value with its labels.
pub(super) type Sample = (Vec<Label>, Value);

#[derive(Debug)]
struct Samples {
    kind: MetricType,
    all: Vec<Sample>,
}

impl EncodeMetric for Samples {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, value) in &self.all {
            match labels.as_slice() {
                [] => value.encode(self.kind, &mut encoder)?,
                _ => value.encode(self.kind, &mut encoder.encode_family(labels)?)?,
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        self.kind
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Value {
    fn encode(self, kind: MetricType, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match (kind, self) {
            (MetricType::Counter, Self::Count(value)) => {
                encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
            }
            (MetricType::Counter, Self::Measure(value)) => {
                encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
            }
            (_, Self::Count(value)) => encoder.encode_gauge(&value),
            (_, Self::Measure(value)) => encoder.encode_gauge(&value),
        }
    }
}

pub(super) struct Page(pub(super) Registry);

impl Page {
    pub(super) fn with_prefix(prefix: &str) -> Self {
        Self(Registry::with_prefix(prefix))
    }

    /// Adds a counter. Without samples it is left out, and so is a gauge.
    pub(super) fn counter(&mut self, name: &str, samples: impl IntoIterator<Item = Sample>) {
        self.add(MetricType::Counter, name, help::counter(name), samples);
    }

    pub(super) fn gauge(&mut self, name: &str, samples: impl IntoIterator<Item = Sample>) {
        self.add(MetricType::Gauge, name, help::gauge(name), samples);
    }

    pub(super) fn count(&mut self, name: &str, value: u64) {
        self.counter(name, [(Vec::new(), Value::Count(value))]);
    }

    /// Adds a counter of seconds without labels.
    pub(super) fn seconds(&mut self, name: &str, value: f64) {
        self.counter(name, [(Vec::new(), Value::Measure(value))]);
    }

    /// Adds a gauge without labels, if its value is known.
    pub(super) fn measure(&mut self, name: &str, value: Option<f64>) {
        self.gauge(name, value.map(|value| (Vec::new(), Value::Measure(value))));
    }

    fn add(
        &mut self,
        kind: MetricType,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample>,
    ) {
        let all = samples.into_iter().collect();
        self.0.register(name, help, Samples { kind, all });
    }
}

pub(super) fn labelled(label: &'static str, value: &str, count: u64) -> Sample {
    (vec![(label, value.to_owned())], Value::Count(count))
}
