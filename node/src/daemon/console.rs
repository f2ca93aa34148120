//! Output for the operator, the status over HTTP and the printed lines; and what others hear of this daemon.

use super::DaemonError;
use super::alarms::{Alarms, Detours, VoidRounds};
use crate::api::StatusHandle;
use crate::config::{Config, DaemonConfig};
use crate::events::EventLog;
use crate::progress::{LogMode, Printer};
use crate::telemetry::Telemetry;
use murmurate_protocol::PeerId;
use murmurate_protocol::vitals::DaemonName;
use std::time::{Duration, Instant};

/// The status and the printer, with the values that both show.
pub(super) struct Console {
    /// The status that `/status` and `/metrics` serve.
    pub(super) status: StatusHandle,
    /// Prints for the terminal, or JSON lines for a program.
    pub(super) printer: Printer,
    pub(super) log: EventLog,
    /// Traces and metrics for a collector, if the configuration names one.
    pub(super) telemetry: Option<Telemetry>,
    http: String,
    pub(super) links_read: Instant,
    /// What the daemon says of itself to others.
    pub(super) voice: Voice,
    /// Rounds without a result, which are said.
    pub(super) void_rounds: VoidRounds,
    /// The daemons that were named because they have other data.
    pub(super) other_data: Vec<PeerId>,
    /// The links that were said to go through another daemon.
    pub(super) detours: Detours,
    /// The troubles, as far as they were printed.
    pub(super) alarms: Alarms,
    addresses: Vec<String>,
    open: Option<String>,
}

impl Console {
    /// Starts without addresses, and exports traces and metrics if the configuration names a collector.
    pub(super) fn new(
        config: &Config,
        status: StatusHandle,
        log: EventLog,
        mode: LogMode,
        http: String,
    ) -> Result<Self, DaemonError> {
        let collector = config.daemon.watch.otlp.as_ref();
        let telemetry = collector
            .map(|collector| Telemetry::start(collector, &status.status()))
            .transpose()
            .map_err(DaemonError::Telemetry)?;
        let terms = status.look(|facts| facts.about.agreement);
        Ok(Self {
            status,
            printer: Printer::new(mode).until(config.daemon.watch.target),
            log,
            telemetry,
            http,
            links_read: Instant::now(),
            voice: Voice::new(&config.daemon),
            void_rounds: VoidRounds::new(terms),
            other_data: Vec::new(),
            detours: Detours::default(),
            alarms: Alarms::default(),
            addresses: Vec::new(),
            open: config.run.open.then(|| config.run.name.clone()),
        })
    }

    pub(super) fn listening(&mut self, address: String) {
        tracing::info!(address, "listening");
        self.addresses.push(address);
        self.show_addresses();
        let peer = self.status.with(|observer| observer.status.peer.clone());
        self.printer.listening(
            &peer,
            &self.addresses,
            Some(self.http.clone()),
            self.open.as_deref(),
        );
    }

    pub(super) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Removes an address at which others can no longer join.
    pub(super) fn not_listening(&mut self, gone: &str) {
        self.addresses.retain(|address| address != gone);
        self.show_addresses();
    }

    fn show_addresses(&self) {
        let addresses = self.addresses.clone();
        self.status
            .with(|observer| observer.status.addresses = addresses);
    }
}

/// Time between two summaries of this daemon for the others.
const EVERY: Duration = Duration::from_secs(5);

/// What the daemon's operator lets it say, and when it did so last.
#[derive(Debug)]
pub(super) struct Voice {
    pub(super) name: Option<DaemonName>,
    speaks: bool,
    spoke: Option<Instant>,
}

impl Voice {
    pub(super) fn new(config: &DaemonConfig) -> Self {
        Self {
            name: config.name.clone(),
            speaks: config.share_vitals,
            spoke: None,
        }
    }

    /// Due every few seconds, where the daemon speaks at all.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self
            .spoke
            .is_none_or(|spoke| now.duration_since(spoke) >= EVERY);
        if self.speaks && due {
            self.spoke = Some(now);
        }
        self.speaks && due
    }
}
