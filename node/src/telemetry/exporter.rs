//! A build that exports: the peer's events as spans, the daemon's figures as metrics.

use crate::api::{Figures, Status};
use murmurate_otlp::{Endpoint, Expired, Otlp, Source, Values};
use murmurate_protocol::Event;
use std::time::{Duration, SystemTime};

/// The address of a collector.
pub type Collector = Endpoint;

/// Shorter waits that ended in time are not worth a span.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// Reads the address of a collector.
///
/// # Errors
/// The flaw of the address.
pub fn collector(url: &str) -> Result<Collector, String> {
    url.parse()
        .map_err(|error: murmurate_otlp::EndpointError| error.to_string())
}

#[derive(Debug)]
pub(crate) struct Telemetry {
    otlp: Otlp,
    last: Values,
}

impl Telemetry {
    pub(crate) fn start(collector: &Collector, status: &Status) -> Result<Self, String> {
        let source = Source {
            peer: status.peer.clone(),
            name: status.name.clone(),
            version: status.version.clone(),
            run: status.run.clone(),
            preset: status.preset.clone(),
        };
        let otlp = Otlp::start(collector, &source).map_err(|error| error.to_string())?;
        Ok(Self {
            otlp,
            last: Values::default(),
        })
    }

    /// Takes an event of the peer. `figures` are the daemon's counters now.
    pub(crate) fn observe(&mut self, event: &Event, figures: impl FnOnce() -> Figures) {
        let now = SystemTime::now();
        match event {
            Event::Phase { round, phase } => self.otlp.phase(now, round.0, &phase.to_string()),
            Event::Waited {
                wait,
                waited,
                expired,
                ..
            } if *expired || *waited >= WAIT_MIN => {
                let expired = if *expired { Expired::Yes } else { Expired::No };
                self.otlp.waited(now, wait.word(), *waited, expired);
            }
            Event::RoundEnded { round, seconds, .. } => {
                let figures = figures();
                self.last = Values {
                    rounds: round.0 + 1,
                    inner_steps: figures.inner_steps,
                    samples: figures.samples,
                    bytes_sent: figures.bytes_sent,
                    bytes_received: figures.bytes_received,
                    peers: figures.peers,
                    train_s: figures.train_s,
                    round_s: Some(*seconds),
                    loss: figures.loss,
                    ..self.last
                };
                self.otlp.measured(self.last);
            }
            Event::Evaluated { evaluation, .. } => {
                self.last.test_loss = Some(evaluation.loss);
                self.last.test_accuracy = evaluation.accuracy;
                self.otlp.measured(self.last);
            }
            _ => {}
        }
    }

    /// A line for the operator when the collector has stopped to answer, or answers again.
    pub(crate) fn news(&self) -> Option<String> {
        self.otlp.news()
    }

    /// Sends the remaining spans and metrics. Waits for some seconds at most.
    pub(crate) fn finish(self) {
        self.otlp.finish(SystemTime::now());
    }
}
