//! Traces and metrics for a collector of OpenTelemetry, in builds with the feature `otlp`. Others refuse the
//! key of the configuration, so nothing here happens in them.

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod exporter;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::Telemetry;
#[cfg(not(feature = "otlp"))]
pub(crate) use absent::{Collector, collector};
#[cfg(feature = "otlp")]
pub(crate) use exporter::Telemetry;
#[cfg(feature = "otlp")]
pub use exporter::{Collector, collector};
