//! What a daemon does, as traces and metrics of OpenTelemetry, sent to a collector over HTTP.
//!
//! A round is a span, and its phases and waits are spans in it. Totals and the values of the last round are
//! metrics. The caller never waits: spans go into a bounded queue, and threads of the SDK send them. What
//! the queue cannot hold, or the collector does not take, is lost.
//!
//! This is the only crate that names OpenTelemetry.

mod client;
mod endpoint;
mod instruments;
mod spans;

pub use endpoint::{Endpoint, EndpointError};
pub use instruments::Values;
pub use spans::Expired;

use client::{Client, Health};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use spans::Spans;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Time between two exports of the metrics.
const METRICS_EVERY: Duration = Duration::from_secs(10);

/// Time between two exports of spans.
const SPANS_EVERY: Duration = Duration::from_secs(5);

/// Spans that may wait for an export: some minutes of short rounds.
const SPANS_WAITING_MAX: usize = 4096;

/// Time for the last export.
const END_WAIT: Duration = Duration::from_secs(3);

/// Why nothing can be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// An exporter cannot be built.
    #[error("OTLP: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// The daemon that exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its id, hexadecimal.
    pub peer: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Version of the program.
    pub version: String,
    /// The run's name.
    pub run: String,
    /// The preset of the configuration.
    pub preset: String,
}

/// Exports what one daemon does.
#[derive(Debug)]
pub struct Otlp {
    spans: Spans,
    values: Arc<Mutex<Values>>,
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    health: Arc<Health>,
}

impl Otlp {
    /// Begins to export to a collector, which need not be there yet.
    ///
    /// # Errors
    /// If the exporters cannot be built.
    pub fn start(endpoint: &Endpoint, source: &Source) -> Result<Self, OtlpError> {
        let health = Arc::new(Health::default());
        let client = || Client::new(endpoint.clone(), Arc::clone(&health));
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.url("/v1/traces"))
            .build()?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.url("/v1/metrics"))
            .build()?;
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(SPANS_WAITING_MAX)
            .with_scheduled_delay(SPANS_EVERY)
            .build();
        let processor = BatchSpanProcessor::builder(spans).with_batch_config(config);
        let traces = SdkTracerProvider::builder()
            .with_span_processor(processor.build())
            .with_resource(resource(source))
            .build();
        let reader = PeriodicReader::builder(metrics).with_interval(METRICS_EVERY);
        let metrics = SdkMeterProvider::builder()
            .with_reader(reader.build())
            .with_resource(resource(source))
            .build();
        let values = Arc::new(Mutex::new(Values::default()));
        instruments::register(&metrics, &values);
        Ok(Self {
            spans: Spans::new(&traces),
            values,
            traces,
            metrics,
            health,
        })
    }

    /// The daemon enters a phase of a round.
    pub fn phase(&mut self, at: SystemTime, round: u64, phase: &str) {
        self.spans.phase(at, round, phase);
    }

    /// A wait has ended. `expired`: its deadline has passed.
    pub fn waited(&mut self, at: SystemTime, what: &str, waited: Duration, expired: Expired) {
        self.spans.waited(at, what, waited, expired);
    }

    /// A round has ended, or was evaluated: these are the daemon's values now.
    pub fn measured(&mut self, values: Values) {
        self.spans.measured(&values);
        // Each change is complete before the lock is released.
        *self.values.lock().unwrap_or_else(PoisonError::into_inner) = values;
    }

    /// A line for the operator when the collector has stopped to answer, or answers again.
    pub fn news(&self) -> Option<String> {
        self.health.news()
    }

    /// Sends the spans that have ended now, and waits for that. Returns what [`Otlp::news`] says then.
    pub fn flushed(&self) -> Option<String> {
        // The client has noted what failed.
        let _ = self.traces.force_flush();
        self.news()
    }

    /// Sends the remaining spans and metrics. Waits for some seconds at most.
    pub fn finish(mut self, at: SystemTime) {
        self.spans.end(at);
        // That the collector is gone was said before.
        let _ = self.traces.shutdown_with_timeout(END_WAIT);
        let _ = self.metrics.shutdown_with_timeout(END_WAIT);
    }
}

fn resource(source: &Source) -> Resource {
    let text = |key: &'static str, value: &str| KeyValue::new(key, value.to_owned());
    let name = source.name.as_deref();
    let all = [
        text("service.instance.id", &source.peer),
        text("service.version", &source.version),
        text("murmurate.run", &source.run),
        text("murmurate.preset", &source.preset),
    ];
    Resource::builder()
        .with_service_name("murmurate")
        .with_attributes(all)
        .with_attributes(name.map(|name| text("murmurate.daemon", name)))
        .build()
}
